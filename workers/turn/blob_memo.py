"""Decodes each blob once, though turns read it again and again. From one turn over a large owner to the next, nearly
all of its pods are the same; so are, from node to node, the DaemonSets that every node is compared with.

A blob determines its object, so the memo can never be out of date. It only saves time. It keeps no blobs, which take
up as much as their objects: an object is found by the hash of its blob, which has 64 bits and a key of this process.
Of objects that have the same uid, so few are kept that no two blobs have the same hash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

from msgspec.structs import force_setattr

from oarlock.broker.values.objects import Cached
from oarlock.controllers.objects.codec import decode_pod
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.registry import WATCHED


class _HasUid(Protocol):
    @property
    def uid(self) -> str: ...


T = TypeVar("T", bound=_HasUid)

LARGE = 64
"""From so many pods on an owner counts as large. There are many smaller ones: their pods would hardly be met again."""
PODS_MAX = 4_096
"""One takes up about 0.5 kB."""
OWNERS_MAX = 256
FORGOTTEN_AFTER = 1_000
"""So many smaller owners one after the other, and the large ones are forgotten: nothing else makes room for them."""


class BlobMemo(Generic[T]):
    """Two generations of at least ``kept_max`` objects: an object that is not met again while the younger generation
    fills up is forgotten with the older one, and all are where ``kept_max`` others come at once. If fewer than
    ``least`` objects are asked for, nothing is kept; after ``FORGOTTEN_AFTER`` times in a row all is forgotten.
    """

    def __init__(self, decode: Callable[[bytes], T], kept_max: int, least: int = 1) -> None:
        self._decode, self._kept_max, self._least = decode, kept_max, least
        self._younger: dict[int, T] = {}
        self._older: dict[int, T] = {}
        self._small_in_a_row = 0
        """How often fewer than ``least`` were asked for, since it was more."""

    def __len__(self) -> int:
        """Objects kept; those met in both generations count twice."""
        return len(self._younger) + len(self._older)

    def decode(self, cached: Sequence[Cached]) -> tuple[T, ...]:
        """The objects, in the same order. Raises CodecError."""
        return self.take([*cached])

    def take(self, cached: list[Cached]) -> tuple[T, ...]:
        """As ``decode``. It empties the list, of many one by one: both forms of 10,000 pods are 10 MB."""
        decode = self._decode
        if len(cached) < self._least:
            self._small_in_a_row += 1
            if self._small_in_a_row == FORGOTTEN_AFTER:
                self._younger, self._older = {}, {}
            few = tuple([decode(each.blob) for each in cached])
            cached.clear()
            return few
        self._small_in_a_row = 0
        if len(cached) >= self._kept_max and not self._knows(cached[:8]):
            self._younger, self._older = {}, {}  # one such owner alone fills both: make room before it comes
        younger, older, found = self._younger, self._older, []
        cached.reverse()
        while cached:
            each = cached.pop()
            blob = each.blob
            key = hash(blob)
            one = younger.get(key)
            if one is None or one.uid != each.uid:
                one = older.get(key)
                younger[key] = one = decode(blob) if one is None or one.uid != each.uid else one
            found.append(one)
        if len(younger) >= self._kept_max:
            self._younger, self._older = {}, younger
        return tuple(found)

    def _knows(self, some: Sequence[Cached]) -> bool:
        """Whether any of them is kept. Where just these have changed, their owner is decoded once more."""
        return any(hash(each.blob) in known for each in some for known in (self._younger, self._older))


class LikePods:
    """Decodes pods. Those of an owner come together and have much in common: they share one copy of it. That is two
    thirds of a pod's memory.
    """

    def __init__(self) -> None:
        self._last = Pod("", "")

    def decode(self, blob: bytes) -> Pod:
        """Raises CodecError."""
        pod, last = decode_pod(blob), self._last
        if pod.labels != last.labels or pod.owner_refs != last.owner_refs or pod.namespace != last.namespace:
            self._last = pod
            return pod
        force_setattr(pod, "labels", last.labels)
        force_setattr(pod, "owner_refs", last.owner_refs)
        force_setattr(pod, "namespace", last.namespace)
        if pod.phase == last.phase:
            force_setattr(pod, "phase", last.phase)
        return pod


PODS = BlobMemo(LikePods().decode, PODS_MAX, LARGE)
"""The process's own, as are those of owners."""


@cache
def owners(resource: str) -> BlobMemo[Any]:
    """Of the owners that fan-outs look at."""
    return BlobMemo(WATCHED[resource].decode, OWNERS_MAX)
