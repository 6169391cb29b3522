"""Traces of the life of a key: what a process tells of it, and who passes that on where it is asked for."""
