"""Commands that look into Redis: queues, locks, expectations, the cache, the epoch."""
