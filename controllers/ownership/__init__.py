"""Which object belongs to which owner."""
