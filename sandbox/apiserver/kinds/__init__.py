"""The kinds that are served, and what the server itself writes into their objects."""
