"""What a fleet that runs dry has found beside upstream."""
