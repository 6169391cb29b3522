"""Objects of the Kubernetes API as the controllers know them: models, and their JSON and msgpack forms."""
