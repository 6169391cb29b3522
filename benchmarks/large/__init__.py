"""A large cluster: what it costs to bring it up, to keep it, and to lose its Redis."""
