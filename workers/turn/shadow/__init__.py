"""A dry run beside upstream: what was decided, held against what upstream did. Pure but for the recorder."""
