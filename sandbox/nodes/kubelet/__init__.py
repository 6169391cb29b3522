"""The simulated kubelets: what becomes of a pod on its node."""
