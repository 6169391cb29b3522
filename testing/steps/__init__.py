"""What a function of the steps style is given in a test without a cluster."""
