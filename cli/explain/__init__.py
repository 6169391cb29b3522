"""`oarlock explain`: what is known of a key, as sentences."""
