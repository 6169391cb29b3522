"""Processes: who starts them, renews their leases and gives their keys back."""
