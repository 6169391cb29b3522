"""How objects look in `kubectl get`."""
