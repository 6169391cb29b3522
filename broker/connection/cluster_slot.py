"""The one node of a Redis Cluster that a shard lives on: the master of the slot of its hash tag.

All keys of a shard have the tag, so a client speaks to one node and never follows a redirection: to be redirected means
that the slot has moved, and with it the epoch has ended. A master that was replaced, or is cut off, says so by itself.
"""

from __future__ import annotations

from typing import Any

from redis.crc import key_slot
from redis.exceptions import ConnectionError as RedisConnectionError

from oarlock.broker import keys
from oarlock.broker.connection.finding import Guides, Place
from oarlock.broker.connection.redis_url import RedisUrl
from oarlock.broker.connection.tls import TlsFiles


def slot_of(shard: str) -> int:
    """The slot that all keys of a shard are in."""
    return key_slot(keys.epoch(shard).encode())


class SlotFinder:
    """``url`` is of the kind CLUSTER; its servers are asked, and those they tell of when none of them answers."""

    asked_every_s = 0.0

    def __init__(self, url: RedisUrl, shard: str, tls: TlsFiles, timeout_s: float) -> None:
        self._slot = slot_of(shard)
        self._guides = Guides(
            url.places,
            username=url.username,
            password=url.password,
            tls=tls if url.tls else None,
            timeout_s=timeout_s,
        )

    def find(self) -> Place:
        """Host and port of the slot's master. Raises RedisError."""
        return self._guides.ask(("CLUSTER", "SLOTS"), self._read)

    def misled(self) -> None:
        """Ask another node first: one that is cut off tells of old times."""
        self._guides.rotate()

    def _read(self, answer: Any, guide: Place) -> Place:
        masters = [(first, last, _place(node, guide)) for first, last, node, *_ in answer]
        self._guides.learn([place for _, _, place in masters])
        for first, last, place in masters:
            if first <= self._slot <= last:
                return place
        raise RedisConnectionError(f"the cluster has no master for slot {self._slot}, says {guide[0]}:{guide[1]}")


def _place(node: list[Any], guide: Place) -> Place:
    """A node that does not know its own name is where it was asked (upstream: CLUSTER SLOTS, preferred endpoint)."""
    host = (node[0] or b"").decode()
    return (guide[0] if host in ("", "?") else host), int(node[1])
