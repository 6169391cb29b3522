"""`oarlock run`: the main job shown, and what came of it, counted from a watch."""
