"""The private Redis of the embedded default."""
