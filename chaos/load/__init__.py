"""The load: what users do to owners, pods and nodes while the faults last."""
