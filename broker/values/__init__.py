"""What the broker hands out and takes: values only."""
