"""The turns of controllers of one's own: what is wanted of an object, or a function that goes step by step."""
