"""Events of the API in the words of ingest.lua and stage.lua."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oarlock.broker.values.events import Event


def ingest_args(events: Sequence[Event]) -> list[str | bytes]:
    """Of ingest.lua, after its own words: a contiguous batch, with what each event is."""
    flat = _apart(events)
    for event in events:
        flat += (event.word, *_object(event))
    return flat


def stage_args(resource: str, generation: str, lock_ms: int, events: Sequence[Event]) -> list[str | int | bytes]:
    """Of stage.lua: a part of a list, objects as they are."""
    flat = _apart(events)
    for event in events:
        flat += _object(event)
    return [resource, generation, lock_ms, *flat]


def _apart(events: Iterable[Event]) -> list[str | bytes]:
    """How many parts these events' objects have apart, and each part once; and so the texts of their classes."""
    parts: dict[str, str | bytes] = {}
    for event in events:
        if event.apart and event.blob is not None:
            parts[event.apart[0]] = event.apart[1]
        if (classed := event.classed) is not None:
            parts[classed[0]] = classed[1]
    flat: list[str | bytes] = [str(len(parts))]
    for part in parts.items():
        flat += part
    return flat


def _object(event: Event) -> tuple[str | bytes, ...]:
    """As the scripts take it."""
    return event.id, event.rv, event.uid_and_signature, event.blob or b"", event.words
