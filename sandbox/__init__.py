"""A cluster on one machine: API server, simulated nodes, a private Redis, and `oarlock up`, which starts them all."""
