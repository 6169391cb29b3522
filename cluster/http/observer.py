"""Tells of every request, so that counters can live outside this package."""

from typing import Protocol


class RequestObserver(Protocol):
    """Is called on the client's event loop; must be quick and must not raise."""

    def answered(self, method: str, code: int, took_s: float | None) -> None:
        """A request ended. ``code``: the server's, or below 100 where none came.

        ``took_s``: from its start to the last byte of the answer; None for a watch, which has no such end.
        """

    def limited(self, method: str, waited_s: float) -> None:
        """A request got its token of the rate limit after waiting this long."""


class Unobserved:
    """Counts nothing."""

    def answered(self, method: str, code: int, took_s: float | None) -> None:
        return None

    def limited(self, method: str, waited_s: float) -> None:
        return None
