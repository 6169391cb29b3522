"""The objects a user brings: read, checked, applied."""
