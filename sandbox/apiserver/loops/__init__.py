"""The background work: garbage collection, deletion of namespaces, quotas, expiry of events."""
