"""What all kinds that create pods have in common: names, bodies, slow start, events."""
