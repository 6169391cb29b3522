"""Faults planted one by one in a running fleet: whether what a person runs by the docs names the cause and the object."""
