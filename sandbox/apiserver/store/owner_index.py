"""An index from owners to their dependents: updated by every commit, so that the garbage collector never searches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

Obj = dict[str, Any]
Key = tuple[str, str, str]  # kind name, namespace ("" for cluster scope), name


class OwnerIndex:
    """uid of an owner -> the objects with a reference to it."""

    def __init__(self) -> None:
        # A dict of keys alone is a set that remembers who came first.
        self._dependents: dict[str, dict[Key, None]] = {}

    def dependents(self, owner_uid: str, count_max: int | None = None) -> list[Key]:
        """Up to `count_max` (None: all) dependents, the oldest dependency first."""
        return list(islice(self._dependents.get(owner_uid, ()), count_max))

    def count(self, owner_uid: str) -> int:
        return len(self._dependents.get(owner_uid, ()))

    def each(self, owner_uid: str) -> Iterator[Key]:
        """As `dependents`, one by one; nothing may be stored meanwhile."""
        return iter(self._dependents.get(owner_uid, ()))

    def change(self, key: Key, old: Obj | None, new: Obj | None) -> None:
        """Note that the object of `key` was `old` (None: new) and is `new` (None: gone)."""
        old_refs = old["metadata"].get("ownerReferences") if old is not None else None
        new_refs = new["metadata"].get("ownerReferences") if new is not None else None
        if old_refs is new_refs:
            return
        for ref in old_refs or ():
            keys = self._dependents.get(ref["uid"])
            if keys is not None:
                keys.pop(key, None)
                if not keys:
                    del self._dependents[ref["uid"]]
        for ref in new_refs or ():
            self._dependents.setdefault(ref["uid"], {})[key] = None
