"""What a checker raises."""


class Violation(AssertionError):
    """An invariant broke at this step."""
