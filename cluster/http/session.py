"""The aiohttp session of a transport, set up so that it does exactly one thing per request.

Some of it depends on aiohttp's internals: tests/cluster/http/test_contract.py and the pinned version in pyproject.toml
guard that.
"""

import socket
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import aiohttp
from aiohttp.client_reqrep import ClientRequest, ClientResponse
from aiohttp.connector import Connection

KEEPALIVE_S = 30.0  # well below the 90 s after which an API server closes an idle connection
READ_BUFFER = 1 << 20  # bytes buffered for a reader before the socket is paused


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


current_flight: ContextVar[Flight] = ContextVar("current_flight")


class CheckedRequest(ClientRequest):
    """Checks the deadline again when the connection is open and the bytes are about to be written.

    A check before the connection is opened is not enough, because a TLS handshake takes time.
    """

    async def send(self, conn: Connection) -> ClientResponse:
        flight = current_flight.get()
        if flight.too_late():
            raise TooLateError
        flight.sent = True
        return await super().send(conn)


def open_session(user_agent: str, user_timeout_s: float) -> aiohttp.ClientSession:
    """A session that repeats nothing. user_timeout_s: TCP_USER_TIMEOUT of its sockets."""

    def make_socket(address: tuple[object, ...]) -> socket.socket:
        family, kind, protocol = address[:3]
        made = socket.socket(family, kind, protocol)  # type: ignore[arg-type]
        made.setblocking(False)
        # Bytes that stay unacknowledged for the request's own time end the connection; otherwise a dead path could
        # hold them for a quarter of an hour and deliver them then.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(user_timeout_s * 1000))
        return made

    # No limit here: writes wait at the transport's gate, where waiting uses up none of their time, and
    # watches, each holding a connection for minutes, must not take places from writes.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S, socket_factory=make_socket)
    session = aiohttp.ClientSession(
        connector=connector,
        request_class=CheckedRequest,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        read_bufsize=READ_BUFFER,
        # No compression: our CPU is scarcer than the wire, and watches are never compressed anyway.
        skip_auto_headers=("Accept-Encoding",),
        headers={"User-Agent": user_agent, "Accept": "application/json"},
    )
    # aiohttp repeats PUT and DELETE when a reused connection was dropped, although the server may have
    # committed the first. There is no public switch.
    session._retry_connection = False
    return session
