"""Which objects name an owner: kept with every commit, so that the garbage collector never has to search."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]
Key = tuple[str, str, str]  # kind name, namespace ("" for cluster scope), name


class OwnerIndex:
    """uid of an owner -> the objects with a reference to it."""

    def __init__(self) -> None:
        self._dependents: dict[str, set[Key]] = {}

    def dependents(self, owner_uid: str) -> list[Key]:
        return sorted(self._dependents.get(owner_uid, ()))

    def change(self, key: Key, old: Obj | None, new: Obj | None) -> None:
        """Note that the object of `key` was `old` (None: new) and is `new` (None: gone)."""
        old_refs = old["metadata"].get("ownerReferences") if old is not None else None
        new_refs = new["metadata"].get("ownerReferences") if new is not None else None
        if old_refs is new_refs:
            return
        for ref in old_refs or ():
            keys = self._dependents.get(ref["uid"])
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self._dependents[ref["uid"]]
        for ref in new_refs or ():
            self._dependents.setdefault(ref["uid"], set()).add(key)
