"""Starts and ends the processes of a fleet, renews their leases and gives back their keys."""
