"""What is done to objects: create, update, patch, delete, list, and what may refuse it."""
