"""How a step gets to Redis: the scripts as texts, who runs them, the reads beside them, and what an error means."""
