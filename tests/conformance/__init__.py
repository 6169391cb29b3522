"""Upstream's own end-to-end cases, run against a real server with a fleet in its manager's place."""
