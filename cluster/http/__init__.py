"""Requests as bytes on connections: each is sent at most once."""
