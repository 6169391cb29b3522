"""Whether a request is meant for this server, by its Host header.

A page of the web can let its own name lead to 127.0.0.1 once it is loaded (DNS rebinding): its scripts then reach a
server on this machine as their own origin. The name in the header stays the page's, so a server that answers to its own
names only is out of their reach. Ports are not compared: there may be a proxy in front.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Final
from urllib.parse import urlsplit

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class Hosts:
    """`listening`: the address or name that the server listens on. Where that is every address of the machine, it goes
    by each of them, and by the machine's name.
    """

    def __init__(self, listening: str) -> None:
        address = _address(listening)
        self._any_address = address is not None and address.is_unspecified
        names = {listening.lower()}
        if address is None or address.is_loopback or address.is_unspecified:
            names.update(_LOOPBACK)
        if self._any_address:
            names.update((socket.gethostname().lower(), socket.getfqdn().lower()))
        self._names = frozenset(names)

    def ours(self, host: str) -> bool:
        """`host`: the header, "name" or "name:port"."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name.rstrip(".") in self._names or (self._any_address and _address(name) is not None)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
