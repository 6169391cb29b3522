"""`oarlock run`: a demonstration, and its results, counted from a watch."""
