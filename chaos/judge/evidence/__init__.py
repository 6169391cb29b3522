"""What the recorders saw, as plain values: the only language of the judge."""
