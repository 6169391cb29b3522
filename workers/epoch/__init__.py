"""Life and loss of the Redis data: which ingestor begins an epoch, and how all other processes learn of it."""
