"""Scaling out: worker processes as hosts of their own, a slow link to the API server before each of them."""
