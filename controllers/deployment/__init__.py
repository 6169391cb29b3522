"""Deployments: owners of ReplicaSets, which roll their pods from one template to the next."""
