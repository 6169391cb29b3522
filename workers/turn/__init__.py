"""One turn over one key: a generator of steps, from a claim to the outcome that Redis is told."""
