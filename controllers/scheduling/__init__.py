"""Which nodes a pod template may run on: node selectors and affinity, taints and tolerations."""
