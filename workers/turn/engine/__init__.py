"""Carries out the steps of turns, in Redis and at the API, with many turns side by side."""
