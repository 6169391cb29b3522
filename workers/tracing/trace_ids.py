"""The ids of a key's trace, by which processes agree without a word: an ingestor and a worker compute the same."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class TraceIds(NamedTuple):
    """Of a trace and of its root span, as numbers."""

    trace: int
    root: int


def ids_of(fleet: str, epoch: int, queue: str, key: str, since_ms: int) -> TraceIds:
    """Of the turn that a key has been queued for since a moment of Redis's clock. ``fleet``: its id and shard.

    Of the claims of a key no two have the same ``since_ms``: a claim takes that moment with it. Samplers that go by a
    ratio read the last seven bytes of the trace's id, which are as good as random.
    """
    text = f"{fleet} {epoch} {queue} {key} {since_ms}"
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=24, person=b"oarlock.trace").digest()
    return TraceIds(int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:]) or 1)
