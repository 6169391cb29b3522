"""Who answers scrapers and probes, and what is asked of whom."""
