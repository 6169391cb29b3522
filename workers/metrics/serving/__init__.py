"""Serves metrics and health: the HTTP server, its endpoints, and what an ingestor and a supervisor show there."""
