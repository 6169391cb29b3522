"""The master that Sentinels name, asked anew for every connection.

A Sentinel may be behind the others, so a server that was found has to prove itself: its role first, then, by the guard,
that it is the server of our epoch. A master that was replaced goes on answering until a Sentinel tells it so, which
takes ten seconds (upstream: src/sentinel.c, +convert-to-slave), so open connections ask as well.
"""

from __future__ import annotations

from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from oarlock.broker.connection.finding import Guides, Place
from oarlock.broker.connection.redis_url import RedisUrl
from oarlock.broker.connection.tls import TlsFiles


class SentinelFinder:
    """``url`` is of the kind SENTINEL."""

    asked_every_s = 1.0

    def __init__(self, url: RedisUrl, tls: TlsFiles, timeout_s: float) -> None:
        self._master = url.master
        self._guides = Guides(
            url.places,
            username=url.sentinel_username,
            password=url.sentinel_password,
            tls=tls if url.tls else None,
            timeout_s=timeout_s,
        )

    def find(self) -> Place:
        """Host and port of the master. Raises RedisError."""
        return self._guides.ask(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._master), self._read)

    def misled(self) -> None:
        """Ask another Sentinel first."""
        self._guides.rotate()

    def _read(self, answer: Any, guide: Place) -> Place:
        if answer is None:
            raise RedisConnectionError(f"the Sentinel {guide[0]}:{guide[1]} knows no master {self._master!r}")
        if not isinstance(answer, list) or len(answer) != 2:
            raise ResponseError(f"{guide[0]}:{guide[1]} is no Sentinel")
        return answer[0].decode(), int(answer[1])
