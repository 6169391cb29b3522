"""Simulated nodes: they register, take pods, run them, make them ready and end them (``simulator``)."""
