"""What goes on beside the requests: garbage collection, ends of namespaces, quotas, expiry."""
