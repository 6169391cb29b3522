"""Carries the steps of turns out: in Redis, at the API, and many turns side by side."""
