"""`oarlock plan`: what a fleet would do about the owners in a file, played to its end on a copy of their namespace."""
