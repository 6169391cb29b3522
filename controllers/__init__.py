"""Decisions: what a controller wants done, as a function of what is known and of the moment. Pure."""
