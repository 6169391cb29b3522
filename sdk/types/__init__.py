"""The types of a user's objects: what is served of them, what is cached, and whether an object fits."""
