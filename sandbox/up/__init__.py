"""Everything on one machine: the documents a user brings, the state directory, the process tree."""
