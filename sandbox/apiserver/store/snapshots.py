"""The states that lists under way show, page by page, so that a page costs what is on it and not what there is."""

from __future__ import annotations

from typing import Final

from oarlock.sandbox.apiserver.store.store import Listing

KEPT_MAX: Final = 8  # lists at a time; another one works its state out anew for every page

Key = tuple[str, str | None, int]
"""Kind name, namespace (None: all), resourceVersion."""


class Snapshots:
    """Listings by kind, namespace and resourceVersion, the latest few. They may not be changed."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Key, Listing] = {}

    def get(self, key: Key) -> Listing | None:
        return self._kept.get(key)

    def keep(self, key: Key, listing: Listing) -> None:
        """Remember a state for later pages; what was begun longest ago makes room."""
        self._kept.pop(key, None)
        while len(self._kept) >= KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = listing

    def drop(self, key: Key) -> None:
        """Forget a state whose last page was given."""
        self._kept.pop(key, None)
