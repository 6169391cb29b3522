"""The rules of one version of a custom kind: its form, what the server owns, what is refused, how it is shown.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource (strategy.go, status_strategy.go,
validator.go) and pkg/apiserver/customresource_handler.go. Pure: objects handed in stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.custom.defaulting import defaulted
from oarlock.sandbox.apiserver.custom.pruning import pruned
from oarlock.sandbox.apiserver.custom.schema_errors import SchemaCheck
from oarlock.sandbox.apiserver.custom.structural import Schema
from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.store.stored import Stored

Obj = dict[str, Any]

_NOT_CONTENT: Final = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a custom resource says its size: JSON paths of plain fields."""

    spec: str
    status: str
    selector: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CustomRules:
    """`stored_as` None: this is the stored version. `changed`: the definition changed after objects were stored."""

    api_version: str
    schema: Schema
    has_status: bool
    scale: ScalePaths | None = None
    stored_as: CustomRules | None = None
    changed: bool = False
    terminating: bool = False
    check: SchemaCheck = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "check", SchemaCheck(self.schema))

    # -- what a client sends ----------------------------------------------------------------------

    def received(self, obj: Obj, dropped: list[str] | None = None) -> Obj:
        """The object in the form of this version: without unknown fields, with defaults."""
        formed: Obj = defaulted(pruned(obj, self.schema, dropped), self.schema)
        return formed

    def for_create(self, obj: Obj) -> Obj:
        """A new object, after the server wrote what is its own: no status where that has its own subresource."""
        return {key: value for key, value in obj.items() if key != "status"} if self.has_status else obj

    def for_update(self, subresource: str, new: Obj, old: Obj) -> Obj:
        """A write of status takes everything else from `old`, with the metadata; another one takes the status."""
        if subresource == "status":
            return _with_status(old, new)
        return _with_status(new, old) if self.has_status else new

    def errors(self, obj: Obj) -> list[FieldError]:
        """What the schema refuses in `obj`."""
        return self.check.errors({**obj, "metadata": {}} if "metadata" in self.schema.get("properties", {}) else obj)

    @property
    def is_as_stored(self) -> bool:
        """Whether objects are shown exactly as they are stored."""
        return self.stored_as is None and not self.changed

    # -- what is stored ---------------------------------------------------------------------------

    def to_store(self, obj: Obj) -> Obj:
        """`obj` of this version as it is stored."""
        if self.stored_as is None:
            return obj
        return self.stored_as.received({**obj, "apiVersion": self.stored_as.api_version})

    def from_store(self, obj: Obj) -> Obj:
        """A stored object in this version; itself where it has this form already."""
        if self.is_as_stored:
            return obj
        return self.received({**obj, "apiVersion": self.api_version})

    def shown(self, stored: Stored) -> Stored:
        """As `from_store`, with the JSON."""
        obj = self.from_store(stored.obj)
        return stored if obj is stored.obj else Stored(obj, orjson.dumps(obj), stored.rv)

    def is_other_content(self, new: Obj, old: Obj) -> bool:
        """Whether a change counts as another generation: of anything but metadata and a status of its own."""
        left_out = _NOT_CONTENT | {"status"} if self.has_status else _NOT_CONTENT
        names = (new.keys() | old.keys()) - left_out
        return any(new.get(name) is not old.get(name) and new.get(name) != old.get(name) for name in names)


def _with_status(obj: Obj, of: Obj) -> Obj:
    """`obj` with the status of another, also where that has none."""
    others = {key: value for key, value in obj.items() if key != "status"}
    return {**others, "status": of["status"]} if "status" in of else others
