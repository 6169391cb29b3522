"""One sync of one key: a generator of steps, from a claim to what is said at its end."""
