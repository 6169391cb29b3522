"""What people ask for, in the twin: pauses, rates, weights and drains."""
