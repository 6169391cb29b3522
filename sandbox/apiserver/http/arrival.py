"""When a request reached the machine, which on a busy one may be seconds before the server comes to read it."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from typing import Final

_LAST_DATA_RECV: Final = struct.Struct("52x I")  # milliseconds, in struct tcp_info of linux/tcp.h
_INEXACT_MS: Final = 20
"""The kernel counts in ticks, of 10 ms on the coarsest, when they came and how long ago that is."""


def waited_s(transport: asyncio.BaseTransport | None) -> float:
    """How long ago at least the last bytes of a connection came. 0 where that is not known."""
    connection = transport.get_extra_info("socket") if transport is not None else None
    if connection is None or sys.platform != "linux":
        return 0.0
    try:
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_DATA_RECV.size)
    except (OSError, ValueError):  # the connection has ended, or is none of TCP
        return 0.0
    waited_ms: int = _LAST_DATA_RECV.unpack(told)[0]
    return max(0, waited_ms - _INEXACT_MS) / 1000
