"""The faults: when which comes, and how it is done."""
