"""The API budget of the fleet, as a worker and its supervisor see it."""
