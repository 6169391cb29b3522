"""One request, and who is told of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

KEEPALIVE_S = 30.0  # well below the 90 s after which an API server closes an idle connection


class TooLateError(Exception):
    """The deadline passed before the first byte was handed over."""


@dataclass(slots=True, eq=False)
class Flight:
    """One request, how long it may be sent, and what became of it.

    timeout_s: for the whole request; deadline_s: on `clock`, None for none. sent: whether any byte may have left;
    dropped: whether the connection ended during the request, as one that was idle for long may.
    """

    method: str
    path: str
    timeout_s: float
    clock: Callable[[], float]
    body: bytes = b""
    content_type: str = ""
    deadline_s: float | None = None
    traceparent: str = ""
    sent: bool = False
    dropped: bool = False

    def too_late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline_s is not None and self.clock() >= self.deadline_s


class RequestObserver(Protocol):
    """Is told of every request, on the client's event loop; must be quick and must not raise."""

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
