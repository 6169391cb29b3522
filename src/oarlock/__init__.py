"""oarlock: Kubernetes workload controllers run by a fleet. Its rooms are the folders at the top of the repository."""
