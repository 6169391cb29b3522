"""The broker in memory: the twin of ``redis_broker`` and its scripts, for tests and simulations."""
