"""Faults planted one by one in a running fleet: whether the commands of the docs name the cause and the object."""
