"""Requests by aiohttp: through a proxy, and what cannot be written as plain text. Each is sent exactly once.

Some of it depends on aiohttp's internals: tests/cluster/http/test_contract.py and the pinned version in pyproject.toml
guard that. It takes a process 8 MB, so `cluster.http.transport` imports it when it is first needed: a process without a
proxy never does.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import aiohttp
from aiohttp.client_reqrep import ClientRequest, ClientResponse
from aiohttp.connector import Connection
from yarl import URL

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.http.connector import socket_factory
from oarlock.cluster.http.flight import KEEPALIVE_S, Flight, LostError, TooLateError
from oarlock.cluster.http.messages import HttpAnswer
from oarlock.cluster.http.streaming import READ_BUFFER

_current_flight: ContextVar[Flight] = ContextVar("current_flight")


class CheckedRequest(ClientRequest):
    """Checks the deadline again when the connection is open and the bytes are about to be written.

    A check before the connection is opened is not enough, because a TLS handshake takes time.
    """

    async def send(self, conn: Connection) -> ClientResponse:
        flight = _current_flight.get()
        if flight.too_late():
            raise TooLateError
        flight.sent = True
        return await super().send(conn)


class LibraryStream:
    """A Stream of aiohttp's."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response

    async def some(self) -> bytes:
        with _errors_of_the_system():
            return await self.response.content.readany()

    @property
    def socket(self) -> socket.socket | None:
        transport = self.response.connection.transport if self.response.connection is not None else None
        return transport.get_extra_info("socket") if transport is not None else None

    def close(self) -> None:
        self.response.close()


class Session:
    """Requests to one server. Use inside one event loop.

    config: server and proxy; user_timeout_s: TCP_USER_TIMEOUT of the sockets, and how long a connection may take.
    """

    def __init__(self, config: ClusterConfig, user_agent: str, user_timeout_s: float) -> None:
        self._config, self._connect_s = config, user_timeout_s
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}
        self.client = _open(user_agent, user_timeout_s)

    async def close(self) -> None:
        await self.client.close()

    async def exchange(
        self, flight: Flight, headers: tuple[tuple[str, str], ...], context: ssl.SSLContext | None
    ) -> HttpAnswer:
        """Send a request, at most once, and wait for its answer. ``headers``: those of the credentials.

        Raises TooLateError if its deadline passed before the first byte was handed over, TimeoutError after
        ``flight.timeout_s``, LostError, OSError.
        """
        async with await self._start(flight, headers, context, self._timeout(flight.timeout_s)) as response:
            return await _read(response)

    async def open(
        self, flight: Flight, headers: tuple[tuple[str, str], ...], context: ssl.SSLContext | None
    ) -> LibraryStream | HttpAnswer:
        """Send a request whose answer, if it is 200, is read as it comes; it is the caller's to close.

        ``flight.timeout_s`` bounds the wait for the head of that one, and all of any other. Raises as ``exchange``.
        """
        async with asyncio.timeout(flight.timeout_s):
            endless = aiohttp.ClientTimeout(total=None, sock_connect=self._connect_s)
            response = await self._start(flight, headers, context, endless)
            if response.status == 200:
                return LibraryStream(response)
            try:
                return await _read(response)
            finally:
                response.close()

    async def _start(
        self,
        flight: Flight,
        headers: tuple[tuple[str, str], ...],
        context: ssl.SSLContext | None,
        timeout: aiohttp.ClientTimeout,
    ) -> ClientResponse:
        given = list(headers)
        if flight.body:
            given.append(("Content-Type", flight.content_type))
        if flight.traceparent:
            given.append(("traceparent", flight.traceparent))
        token = _current_flight.set(flight)
        try:
            with _errors_of_the_system():
                return await self.client.request(
                    flight.method,
                    URL(self._config.server + flight.path, encoded=True),
                    data=flight.body or None,
                    headers=given,
                    allow_redirects=False,
                    timeout=timeout,
                    ssl=context or True,
                    server_hostname=self._config.tls.server_name or None,
                    proxy=self._config.proxy or None,
                )
        finally:
            _current_flight.reset(token)

    def _timeout(self, timeout_s: float) -> aiohttp.ClientTimeout:
        made = self._timeouts.get(timeout_s)
        if made is None:
            made = self._timeouts[timeout_s] = aiohttp.ClientTimeout(
                total=timeout_s, sock_connect=min(timeout_s, self._connect_s)
            )
        return made


async def _read(response: ClientResponse) -> HttpAnswer:
    with _errors_of_the_system():
        body = await response.read()
    return HttpAnswer(response.status, response.headers.get("Retry-After", ""), body, reusable=True)


@contextmanager
def _errors_of_the_system() -> Iterator[None]:
    """Those of aiohttp, told as what they are: a connection that ended, or an answer that makes no sense."""
    try:
        yield
    except TimeoutError:  # some of aiohttp's are ClientErrors, too
        raise
    except aiohttp.ClientConnectorError as error:
        raise ConnectionError(str(error)) from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
        raise LostError(str(error)) from error
    except aiohttp.ClientError as error:
        raise ConnectionError(str(error) or type(error).__name__) from error


def _open(user_agent: str, user_timeout_s: float) -> aiohttp.ClientSession:
    # No limit here: writes wait at the transport's gate, where waiting uses up none of their time, and
    # watches, each holding a connection for minutes, must not take places from writes.
    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=KEEPALIVE_S, socket_factory=socket_factory(user_timeout_s)
    )
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
