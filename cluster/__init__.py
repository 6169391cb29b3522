"""The client of the Kubernetes API: reads, lists, watches, and writes that are sent at most once. Knows no Redis."""
