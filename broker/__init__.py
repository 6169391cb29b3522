"""The broker: work queue, locks, expectations, object cache and epoch, all in Redis; it knows nothing of Kubernetes.

It keeps three promises. A key that was added is queued, in work, delayed or parked until a turn over it has ended well.
Two turns over one key are never accepted at once. A write that a turn announced, and that has no answer, is not
forgotten while it may still land.
"""
