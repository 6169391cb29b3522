"""HTTP: from a request to a verb, and back to a response, a watch or a table."""
