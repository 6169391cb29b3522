"""Life and loss of the Redis data: who begins an epoch, and how everybody else learns of it."""
