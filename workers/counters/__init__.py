"""What a process counts, in memory that its supervisor shares and that outlives it."""
