"""Addresses of simulated nodes and pods. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Obj = dict[str, Any]

_HOST_IP_UNKNOWN: Final = "127.0.0.1"


def host_ip(node: Obj) -> str:
    """Where a node says it is."""
    for address in (node.get("status") or {}).get("addresses") or ():
        if address.get("type") == "InternalIP":
            return str(address["address"])
    return _HOST_IP_UNKNOWN


def pod_ips() -> Iterator[str]:
    """Addresses of 10.0.0.0/8, in order and for ever."""
    while True:
        for number in range(1, 2**24 - 1):
            if number % 256 not in (0, 255):
                yield f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
