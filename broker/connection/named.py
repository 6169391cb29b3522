"""Connections to a host by its name, also while the servers that know names say nothing.

A lookup cannot be given up, and a silent resolver takes seconds for it: a supervisor that connects anew would not renew
its leases meanwhile. So after one such lookup the address of before is used, for a while without another lookup.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from redis.connection import Connection
from redis.driver_info import DriverInfo

UNANSWERED_S, UNANSWERED_MAX_S = 5.0, 40.0
"""After a lookup that nobody answered, the next one of that name comes after this time, then after twice that."""
RESOLVER = "timeout:1 attempts:1"
"""In place of 5 s, twice (man resolv.conf): it is for each server, and again where there are domains to search."""


@dataclass(slots=True)
class _Name:
    """What this process knows of a name, and the workers that it forks. ``address``: of the last connection."""

    address: str
    silent_until_s: float = 0.0
    pause_s: float = UNANSWERED_S

    def unanswered(self, now_s: float) -> None:
        self.silent_until_s = now_s + self.pause_s
        self.pause_s = min(UNANSWERED_MAX_S, 2 * self.pause_s)


known: dict[tuple[str, int], _Name] = {}


def resolve_briefly() -> None:
    """Let lookups of this process, and of those that it forks, end soon, unless RES_OPTIONS says otherwise.

    Call it before the first one: glibc reads that variable once. Programs that are started from here find none.
    """
    if "RES_OPTIONS" in os.environ:
        return
    os.environ["RES_OPTIONS"] = RESOLVER
    try:
        socket.getaddrinfo("localhost", None)
    except OSError:  # it has no address here, but the variable was read
        pass
    finally:
        del os.environ["RES_OPTIONS"]


@cache
def driver() -> DriverInfo:
    """What connections say of their library. redis-py reads a file for it, for each connection: a process that may open
    no more files would end by that, though it only wants to connect again.
    """
    return DriverInfo()


class Named(Connection):
    """``may_reuse``: whether the address of before will do where the name cannot be looked up. What is connected to has
    to prove itself then, or nothing depends on it.
    """

    def __init__(self, *args: Any, may_reuse: Callable[[], bool] = lambda: False, **options: Any) -> None:
        super().__init__(*args, **options)  # type: ignore[no-untyped-call]
        self._may_reuse = may_reuse

    def _connect(self) -> socket.socket:
        place = self.host, self.port
        name = known.get(place) if self._may_reuse() else None
        if name is None or time.monotonic() >= name.silent_until_s:
            try:
                made: socket.socket = super()._connect()  # type: ignore[no-untyped-call]
            except socket.gaierror as error:
                if name is None or error.errno != socket.EAI_AGAIN:
                    raise
                name.unanswered(time.monotonic())
            else:
                known[place] = _Name(made.getpeername()[0])
                return made
        return self._connect_to(name)

    def _connect_to(self, name: _Name) -> socket.socket:
        host, self.host = self.host, name.address
        try:
            return super()._connect()  # type: ignore[no-any-return, no-untyped-call]
        except OSError:
            name.silent_until_s = 0.0  # it is time to look again
            raise
        finally:
            self.host = host
