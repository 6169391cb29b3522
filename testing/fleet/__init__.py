"""A fleet inside one process: the real ingestor and the real turns on threads, over the twin or over a Redis server."""
