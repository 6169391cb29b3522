"""The scheduler: which node a pod gets."""
