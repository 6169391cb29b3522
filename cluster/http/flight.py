"""One request, and who is told of it."""

import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

KEEPALIVE_S = 30.0  # well below the 90 s after which an API server closes an idle connection


class TooLateError(Exception):
    """The deadline passed before the first byte was handed over."""


class LostError(ConnectionError):
    """The connection ended before a byte of the answer came, as one may that was idle for long."""


def reason(error: OSError) -> str:
    """In words, without its class and number."""
    alert = str(getattr(error, "reason", "")).partition("_ALERT_")[2] if isinstance(error, ssl.SSLError) else ""
    if alert:
        return f"the server ends TLS with the alert {alert.lower().replace('_', ' ')!r}: see our client certificate"
    if error.errno is None or isinstance(error, ssl.SSLError | socket.gaierror):  # their numbers are not the system's
        return error.strerror or str(error) or type(error).__name__
    return os.strerror(error.errno)


@dataclass(slots=True, eq=False)
class Flight:
    """One request, how long it may be sent, and what became of it.

    timeout_s: for the whole request; deadline_s: on `clock`, None for none; anew: on a connection of its own, none that
    was idle. sent: whether any byte may have left; lost: whether the connection ended before a byte of the answer came.
    """

    method: str
    path: str
    timeout_s: float
    clock: Callable[[], float]
    body: bytes = b""
    content_type: str = ""
    deadline_s: float | None = None
    traceparent: str = ""
    anew: bool = False
    sent: bool = False
    lost: bool = False

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
