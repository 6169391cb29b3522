"""A bounded memory of what was computed for an object, by the object's identity.

Objects of this API are never changed once they are handed on, so what held for one holds for ever. Pods of one
owner share their spec, and a patch shares what it did not touch: most lookups hit.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

V = TypeVar("V")

ENTRIES_MAX: Final = 4096


class IdentityMemo(Generic[V]):
    """Keeps the objects it knows alive, so an id cannot come to mean another object."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Any, V]] = {}

    def get(self, obj: object) -> V | None:
        """What was remembered for exactly this object, or None."""
        entry = self._entries.get(id(obj))
        return entry[1] if entry is not None else None

    def put(self, obj: object, value: V) -> None:
        """Remember `value`. Everything is forgotten when there are too many entries."""
        if len(self._entries) >= ENTRIES_MAX:
            self._entries.clear()
        self._entries[id(obj)] = (obj, value)
