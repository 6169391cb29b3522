"""What the recorders saw, as plain values: the judge reads nothing else."""
