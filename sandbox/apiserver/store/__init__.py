"""Objects and their history, by resourceVersion."""
