"""A worker's local copy of a small resource, brought up to date by each claim that names the resource.

Only for what every turn of a kind reads as a whole: nodes. After a claim it equals the shared cache at that moment. A
worker that waits for its first key has read it ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any

from oarlock.broker.values.objects import Delta
from oarlock.controllers.entries import Watched
from oarlock.workers.signing.refusals import decoded


class LocalCache:
    """``objects``: by id, in order of ids. ``version``: the broker's name of their state; empty: unknown."""

    def __init__(self, resource: Watched[Any]) -> None:
        self._resource = resource
        self._objects: dict[str, Any] = {}
        self.version = ""

    @property
    def objects(self) -> Mapping[str, Any]:
        return self._objects

    def apply(self, delta: Delta) -> None:
        """Take over what has changed, once it is loaded. Raises ObjectRefused, and then nothing was taken over."""
        assert not delta.unread
        if not (delta.full or delta.changed or delta.gone):
            self.version = delta.version
            return
        objects = {} if delta.full else dict(self._objects)
        known = len(objects)
        for key in delta.gone:
            objects.pop(key, None)
        for key, cached in delta.changed:
            objects[intern(key)] = decoded(self._resource, cached)
        if len(objects) > known - len(delta.gone):  # something is new, and stands last
            objects = dict(sorted(objects.items()))
        self._objects, self.version = objects, delta.version
