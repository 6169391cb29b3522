"""What the store tells: changes, with the line that watches send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.store.stored import Stored

__all__ = ["Event", "EventType", "Listing", "Obj", "Stored"]

Obj = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_LINE_HEADS: Final[Mapping[str, bytes]] = {
    name: b'{"type":"' + name.encode() + b'","object":' for name in ("ADDED", "MODIFIED", "DELETED")
}


class Event:
    """One committed change. `obj` is the object after it (for DELETED: as it left), `old` the one before."""

    __slots__ = ("at_s", "kind", "name", "namespace", "new", "previous", "rv", "type")

    def __init__(
        self, type_: EventType, kind: Kind, where: tuple[str, str], new: Stored, previous: Stored | None, at_s: float
    ) -> None:
        self.at_s = at_s
        self.rv = new.rv
        self.type: EventType = type_
        self.kind = kind
        self.namespace, self.name = where
        self.new = new
        self.previous = previous

    @property
    def parts(self) -> tuple[bytes, bytes, bytes]:
        """The line that watches send, in three parts: it is not kept, as it is the object's JSON once more."""
        return _LINE_HEADS[self.type], self.new.raw, b"}\n"

    @property
    def obj(self) -> Obj:
        return self.new.obj

    @property
    def old(self) -> Obj | None:
        return self.previous.obj if self.previous is not None else None


Listing = list[tuple[tuple[str, str], Stored]]
"""((namespace, name), stored) in the order lists have."""
