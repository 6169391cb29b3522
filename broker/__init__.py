"""The broker: work queue, locks, expectations, object cache and epoch, all in Redis; it knows nothing of Kubernetes.

Promise: a key that was added is queued, in work, delayed or parked until a turn over it has ended well; no two turns
over one key are ever accepted at once; what a turn announced and
did not see answered is never forgotten while it matters.
"""
