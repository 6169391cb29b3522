"""Names, selectors, quantities and times as text."""
