"""The same commands as a plugin of kubectl: `kubectl oarlock explain deploy/web -n shop`."""
