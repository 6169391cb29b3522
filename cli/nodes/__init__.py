"""`oarlock nodes`: the simulated nodes."""
