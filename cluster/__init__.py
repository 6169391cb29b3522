"""The Kubernetes API: a client for any server, and `embedded/`, a server of our own. Knows no Redis."""
