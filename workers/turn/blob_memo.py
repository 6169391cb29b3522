"""Decodes each blob once, though turns read it again and again. From one turn over a large owner to the next, nearly
all of its pods are the same; so are, from node to node, the DaemonSets that every node is compared with.

A blob determines its object, so the memo can never be out of date. It only saves time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Generic, TypeVar

from oarlock.broker.values import Cached
from oarlock.controllers.objects.codec import decode_pod
from oarlock.controllers.registry import WATCHED

T = TypeVar("T")

LARGE = 64
"""From so many pods on an owner counts as large. There are many smaller ones: their pods would hardly be met again."""
PODS_MAX = 4_096
"""One takes up about 1.6 kB."""
OWNERS_MAX = 256


class BlobMemo(Generic[T]):
    """Two generations of at least ``kept_max`` objects: an object that is not met again while the younger generation
    fills up is forgotten with the older one. If fewer than ``least`` objects are asked for, nothing is kept.
    """

    def __init__(self, decode: Callable[[bytes], T], kept_max: int, least: int = 1) -> None:
        self._decode, self._kept_max, self._least = decode, kept_max, least
        self._younger: dict[bytes, T] = {}
        self._older: dict[bytes, T] = {}

    def __len__(self) -> int:
        """Objects kept; those met in both generations count twice."""
        return len(self._younger) + len(self._older)

    def decode(self, cached: Sequence[Cached]) -> tuple[T, ...]:
        """The objects, in the same order. Raises CodecError."""
        decode = self._decode
        if len(cached) < self._least:
            return tuple([decode(each.blob) for each in cached])
        younger, older, found = self._younger, self._older, []
        for each in cached:
            blob = each.blob
            one = younger.get(blob)
            if one is None:
                one = older.get(blob)
                younger[blob] = one = decode(blob) if one is None else one
            found.append(one)
        if len(younger) >= self._kept_max:
            self._younger, self._older = {}, younger
        return tuple(found)


PODS = BlobMemo(decode_pod, PODS_MAX, LARGE)
"""The process's own, as are those of owners."""


@cache
def owners(resource: str) -> BlobMemo[Any]:
    """Of the owners that fan-outs look at."""
    return BlobMemo(WATCHED[resource].decode, OWNERS_MAX)
