"""Holds a part of a list against the cache: which of its objects the cache has in the same version."""

from __future__ import annotations

from collections.abc import Sequence

from oarlock.broker.keys import Keys
from oarlock.broker.steps.loading import AskAll
from oarlock.broker.values.events import Compared


def compare(
    resource: str,
    generation: str,
    versions: Sequence[tuple[str, str]],
    keys: Keys,
    ask_all: AskAll,
) -> Compared:
    """In one round trip. ``versions``: id and resourceVersion. Raises what ``ask_all`` raises."""
    objects = keys.objects(resource, generation)
    found, gen, mark, count = ask_all(
        [
            ("HMGET", objects, *[each for each, _ in versions]) if versions else ("PING",),
            ("HGET", keys.of("generation"), resource),
            ("HGET", keys.of("watermark"), resource),
            ("HLEN", objects),
        ]
    )
    read, same = (gen or b"0").decode(), 0
    if read == generation and versions:
        same = sum(
            value is not None and value.startswith(f"{rv} ".encode())
            for (_, rv), value in zip(versions, found, strict=True)
        )
    return Compared(read, (mark or b"").decode(), count, same)
