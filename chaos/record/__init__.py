"""Recorders: what happened in the cluster and in Redis, kept as evidence."""
