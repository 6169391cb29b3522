"""The address for metrics and health: checked and bound before anything else is started."""

from __future__ import annotations

import errno
import os
import socket

FD_VARIABLE = "OARLOCK_METRICS_FD"
"""Instead of an address: descriptors of listening sockets, separated by commas, from the parent process."""
BACKLOG = 16
PORT_MAX = 65_535
REMEDY = "give HOST:PORT that is free, such as 127.0.0.1:9090, :9090 for all addresses, or 0 for none"


class BadBindAddress(Exception):
    """The address cannot be used; the text is one line with the remedy."""


def check(text: str, count: int = 1) -> None:
    """Whether ``text`` is an address with a port for each of ``count``. Raises BadBindAddress; nothing is bound."""
    if text.strip() in ("", "0"):
        return
    _, port = _parse(text)
    if port and port + count - 1 > PORT_MAX:
        raise BadBindAddress(f"--metrics-bind-address {text}: there is no port {PORT_MAX + 1}; {REMEDY}")


def listen(text: str, count: int = 1) -> list[socket.socket]:
    """Listening sockets for ``text``: HOST:PORT, [IPV6]:PORT, :PORT (all addresses), port 0 for any free one; none for
    "0" and "". The second of ``count`` has the next port, and so on. Raises BadBindAddress, and then has none open.
    """
    if text.strip() in ("", "0"):
        return []
    host, port = _parse(text)
    found: list[socket.socket] = []
    try:
        for index in range(count):
            found.append(_open(host, port + index if port else 0))
    except OSError as error:
        for each in found:
            each.close()
        where = f"{text} (port {port + len(found)})" if port and found else text
        raise BadBindAddress(f"--metrics-bind-address {where}: {_why(error)}; {REMEDY}") from None
    return found


def given() -> list[socket.socket]:
    """The sockets that this process was started with, once."""
    return [socket.socket(fileno=int(word)) for word in os.environ.pop(FD_VARIABLE, "").split(",") if word]


def _parse(text: str) -> tuple[str, int]:
    host, colon, port_text = text.strip().rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not bracketed):
        raise BadBindAddress(f"--metrics-bind-address {text!r} is no address; {REMEDY}")
    if not (port_text.isascii() and port_text.isdigit() and int(port_text) <= PORT_MAX):
        raise BadBindAddress(f"--metrics-bind-address {text!r}: {port_text!r} is no port; {REMEDY}")
    return host[1:-1] if bracketed else host, int(port_text)


def _open(host: str, port: int) -> socket.socket:
    if port > PORT_MAX:
        raise OSError(0, f"there is no port {port}")
    if not host:
        return _all_addresses(port)
    family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(place[:2], family=family, backlog=BACKLOG)


def _why(error: OSError) -> str:
    if isinstance(error, socket.gaierror) or not error.errno:
        return str(error.strerror or error).lower()
    return "the port is in use" if error.errno == errno.EADDRINUSE else os.strerror(error.errno).lower()


def _all_addresses(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
    return socket.create_server(("", port), backlog=BACKLOG)


def url(listening: socket.socket) -> str:
    """Its URL for a client on this machine."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104  # shown, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
