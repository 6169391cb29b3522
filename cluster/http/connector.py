"""Opens connections to one server.

Its name is looked up once for all that wait for it. Where it has several addresses, the next one is tried after 0.25 s
beside those before it (RFC 8305), so that a dead one costs no more than that.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohappyeyeballs

from oarlock.cluster.http.flight import reason

HEAD_START_S = 0.25  # of an address before the next one: the delay that RFC 8305, section 5 recommends
NAME_KEPT_S = 10.0  # as aiohttp keeps it; a failover that moves a name is followed after that
DOUBTED_S = 1.0  # after a failed connection a name is looked up anew, but no more often
LOOKUP_S = 1.0  # so long is a new lookup waited for; after that the address of before is used, until it has an answer

SocketFactory = Callable[[tuple[object, ...]], socket.socket]
P = TypeVar("P", bound=asyncio.Protocol)


class Connector:
    """server: its URL; server_name: the name to verify instead of the host; connect_s: how long it may take until a
    connection is open, and TCP_USER_TIMEOUT of its socket. Use inside one event loop.

    Raises ValueError for a URL that is not http or https with a host.
    """

    def __init__(self, server: str, server_name: str, connect_s: float) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not the URL of a server: {server}")
        self._secure = parts.scheme == "https"
        address, _, zone = parts.hostname.partition("%25")  # as a URL writes the % before a zone (RFC 6874)
        self._host = f"{address}%{zone}" if zone else parts.hostname
        self._port = parts.port or (443 if self._secure else 80)
        # A certificate never names the root, nor a zone, which is a matter of this host alone.
        self._name = (server_name or self._host.partition("%")[0]).rstrip(".")
        self._connect_s = connect_s
        self._make_socket = socket_factory(connect_s)
        self._addresses: Sequence[aiohappyeyeballs.AddrInfoType] = ()
        self._known_until_s = 0.0
        self._lookup: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """host:port, to be told to people."""
        return f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"

    async def connect(self, protocol: Callable[[], P], context: ssl.SSLContext | None) -> P:
        """Open a connection. ``context``: of TLS; None for none. Raises ConnectionError: where to, and why."""
        assert self._secure == (context is not None), "a server is spoken to as its URL says"
        try:
            async with asyncio.timeout(self._connect_s):
                return await self._connected(protocol, context)
        except TimeoutError as error:
            self._doubt()
            raise ConnectionError(f"no connection to {self.address} within {self._connect_s:g} s") from error
        except asyncio.CancelledError:  # who asked has no time left
            self._doubt()
            raise
        except OSError as error:
            self._doubt()
            raise ConnectionError(f"cannot connect to {self.address}: {reason(error)}") from error
        except UnicodeError as error:  # such as two dots beside each other
            raise ConnectionError(
                f"cannot connect to {self.address}: {self._name!r} is not the name of a host"
            ) from error

    async def _connected(self, protocol: Callable[[], P], context: ssl.SSLContext | None) -> P:
        if time.monotonic() >= self._known_until_s:
            await self._look_up_again() if self._addresses else await self._look_up()
        loop, verified = asyncio.get_running_loop(), self._name if context is not None else None
        if len(self._addresses) == 1 and self._addresses[0][0] == socket.AF_INET:  # as in a pod: at half the cost
            host, port = self._addresses[0][4]
            transport, connection = await loop.create_connection(
                protocol, host, port, ssl=context, server_hostname=verified
            )
            give_up_with_the_request(transport.get_extra_info("socket"), self._connect_s)
            return connection
        made = await aiohappyeyeballs.start_connection(
            self._addresses, happy_eyeballs_delay=HEAD_START_S, socket_factory=self._make_socket
        )
        _, connection = await loop.create_connection(  # the socket is the loop's from here on
            protocol, sock=made, ssl=context, server_hostname=verified
        )
        return connection

    def _doubt(self) -> None:
        """The server may have another address by now."""
        self._known_until_s = min(self._known_until_s, time.monotonic() + DOUBTED_S)

    async def _look_up_again(self) -> None:
        try:
            async with asyncio.timeout(LOOKUP_S):
                await self._look_up()
        except (TimeoutError, socket.gaierror) as error:
            if isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN:
                raise
            self._known_until_s = time.monotonic() + NAME_KEPT_S  # a resolver that is away ends no connection

    async def _look_up(self) -> None:
        """One for all who ask at the same time; it goes on where one of them gives up."""
        if self._lookup is None:
            self._lookup = asyncio.create_task(self._resolve())
            self._lookup.add_done_callback(self._looked_up)
        await asyncio.shield(self._lookup)

    def _looked_up(self, lookup: asyncio.Task[None]) -> None:
        self._lookup = None
        if not lookup.cancelled():
            lookup.exception()  # those who wait are told of it, if any still do

    async def _resolve(self) -> None:
        loop = asyncio.get_running_loop()
        zone = self._host.partition("%")[2]
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        self._addresses = [
            (family, kind, protocol, name, _with_zone(address, zone)) for family, kind, protocol, name, address in found
        ]
        self._known_until_s = time.monotonic() + NAME_KEPT_S


def _with_zone(address: tuple[Any, ...], zone: str) -> tuple[Any, ...]:
    """With its interface in the text: uvloop looks at nothing else. ``zone``: what the URL says of it, if anything."""
    host, *rest = address
    zone = zone or (str(rest[2]) if len(rest) == 3 and rest[2] else "")
    return (f"{host}%{zone}" if zone and "%" not in host else host, *rest)


def socket_factory(user_timeout_s: float) -> SocketFactory:
    """Makes sockets for addresses as getaddrinfo gives them, with that TCP_USER_TIMEOUT."""

    def make_socket(address: tuple[object, ...]) -> socket.socket:
        family, kind, protocol = address[:3]
        made = socket.socket(family, kind, protocol)  # type: ignore[arg-type]
        made.setblocking(False)
        give_up_with_the_request(made, user_timeout_s)
        return made

    return make_socket


def give_up_with_the_request(made: socket.socket, user_timeout_s: float) -> None:
    """Bytes that stay unacknowledged for the request's own time end the connection; otherwise a dead path could hold
    them for a quarter of an hour and deliver them then.
    """
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(user_timeout_s * 1000))
