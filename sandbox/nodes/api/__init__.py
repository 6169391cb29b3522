"""The API server as the simulated nodes use it: the store of our own, or any server over HTTP."""
