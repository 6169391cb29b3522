"""Connections to a host by its name, also while the servers that know names say nothing.

A lookup cannot be given up, and a silent resolver takes seconds for it: a supervisor that connects anew would not renew
its leases meanwhile. So after one such lookup the address of before is used, for a while without another lookup.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any

from redis.connection import Connection

UNANSWERED_S = 5.0
"""After a lookup that nobody answered, the next one comes after this time."""
RESOLVER = "timeout:1 attempts:2"
"""In place of 5 s, twice (man resolv.conf)."""


class _Names:
    """What this process knows, and the workers that it forks."""

    def __init__(self) -> None:
        self.addresses: dict[tuple[str, int], str] = {}
        self.silent_until_s = 0.0


known = _Names()


def resolve_briefly() -> None:
    """Let lookups of this process end soon, unless RES_OPTIONS says otherwise. Call it before the first one."""
    os.environ.setdefault("RES_OPTIONS", RESOLVER)


class Named(Connection):
    """``may_reuse``: whether the address of before will do where the name cannot be looked up. What is connected to has
    to prove itself then, or nothing depends on it.
    """

    def __init__(self, *args: Any, may_reuse: Callable[[], bool] = lambda: False, **options: Any) -> None:
        super().__init__(*args, **options)  # type: ignore[no-untyped-call]
        self._may_reuse = may_reuse

    def _connect(self) -> socket.socket:
        place = self.host, self.port
        address = known.addresses.get(place) if self._may_reuse() else None
        if address is None or time.monotonic() >= known.silent_until_s:
            try:
                made: socket.socket = super()._connect()  # type: ignore[no-untyped-call]
            except socket.gaierror as error:
                if address is None or error.errno != socket.EAI_AGAIN:
                    raise
                known.silent_until_s = time.monotonic() + UNANSWERED_S
            else:
                known.addresses[place] = made.getpeername()[0]
                return made
        return self._connect_to(address)

    def _connect_to(self, address: str) -> socket.socket:
        name, self.host = self.host, address
        try:
            return super()._connect()  # type: ignore[no-any-return, no-untyped-call]
        except OSError:
            known.silent_until_s = 0.0  # it is time to look again
            raise
        finally:
            self.host = name
