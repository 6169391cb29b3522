"""What a user's own controllers need of a cluster: their CustomResourceDefinitions and their rights."""
