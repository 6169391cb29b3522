"""Connections to Redis: URL, TLS, Sentinel, Cluster, the users, and whether a server is fit to carry the fleet."""
