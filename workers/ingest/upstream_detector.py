"""Detects upstream's controllers at work on our kinds, by the one trace that proves it: what they create.

An object is theirs if an owner of our kinds controls it, and its managedFields say that upstream's manager wrote what
is written at creation: the containers of a pod, the selector of a ReplicaSet. It may touch ours later, as garbage
collector or as the controller of another kind. Such an object is evidence only if it is new: created since the epoch
was listed, or shortly before. An older one may be from before the take-over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import msgspec

from oarlock.controllers.objects.model import OwnerRef, controller_of
from oarlock.controllers.registry import CONTROLLERS, QUEUE_OF_KIND

RECENT_MS = 10_000
"""A listed object of this age or less counts as new. A person who takes over waits longer between the two managers."""
MANAGERS = ("kube-controller-manager", "hyperkube", "k3s")
"""The managers that upstream's controllers write: the name of their program, cut at the first slash."""

_MANAGER = b'"manager":"'  # as API servers write it: compact
_NAMES = tuple(f'{name}"'.encode() for name in MANAGERS)


@dataclass(frozen=True, slots=True)
class Evidence:
    """An object that a manager of upstream's created for an owner of ours; ``at`` is the API server's time."""

    made: str
    owner: str
    manager: str
    at: str

    def __str__(self) -> str:
        return f"{self.manager} created {self.made} of {self.owner} at {self.at}"


def mend() -> str:
    """How upstream's manager is to be started beside us.

    Upstream: cmd/kube-controller-manager/app/controllermanager.go; the names until 1.27, which are still taken.
    """
    return "start it with --controllers=*," + ",".join(
        f"-{each.name.removesuffix('-controller')}" for each in CONTROLLERS.values()
    )


class Dependent(Protocol):
    """An object that a controller may have made."""

    @property
    def key(self) -> str: ...
    @property
    def owner_refs(self) -> tuple[OwnerRef, ...]: ...
    @property
    def created_ms(self) -> int: ...


class _Spec(msgspec.Struct):
    containers: dict[str, msgspec.Raw] | None = msgspec.field(default=None, name="f:containers")
    selector: dict[str, msgspec.Raw] | None = msgspec.field(default=None, name="f:selector")


class _Fields(msgspec.Struct):
    spec: _Spec | None = msgspec.field(default=None, name="f:spec")


class _Entry(msgspec.Struct):
    manager: str = ""
    fields: _Fields | None = msgspec.field(default=None, name="fieldsV1")

    @property
    def created(self) -> bool:
        spec = self.fields.spec if self.fields is not None else None
        return spec is not None and (spec.containers is not None or spec.selector is not None)


class _Meta(msgspec.Struct, rename="camel"):
    creation_timestamp: str | None = None
    managed_fields: tuple[_Entry, ...] | None = None


class _Object(msgspec.Struct):
    metadata: _Meta


_OBJECT = msgspec.json.Decoder(_Object)


class UpstreamDetector:
    """Looks at objects as they are read; for a new one that costs a search in its bytes. ``wall_ms``: the wall clock.

    ``kinds``: of the owners that this fleet manages; upstream may well manage others. ``latest``: the newest evidence.
    """

    def __init__(self, wall_ms: Callable[[], int], kinds: Collection[str] = QUEUE_OF_KIND) -> None:
        self._wall_ms, self._kinds = wall_ms, kinds
        self.latest: Evidence | None = None

    def added(self, raw: bytes, kind: str, obj: Dependent) -> None:
        """Look at an object of that kind that a watch reports as new."""
        if found := evidence(raw, kind, obj, self._kinds):
            self.latest = found

    def listed(self, raw: bytes, kind: str, obj: Dependent) -> None:
        """Look at an object of a list. To a clock behind the server's all would be of the future, and so new."""
        if obj.created_ms and abs(self._wall_ms() - obj.created_ms) <= RECENT_MS:
            self.added(raw, kind, obj)


def evidence(raw: bytes, kind: str, obj: Dependent, kinds: Collection[str] = QUEUE_OF_KIND) -> Evidence | None:
    """What the JSON of an object proves; None if nothing. ``kind``: the object's."""
    if not _names_upstream(raw):
        return None
    ref = controller_of(obj)
    if ref is None or ref.kind not in kinds:
        return None
    try:
        meta = _OBJECT.decode(raw).metadata
    except msgspec.MsgspecError:
        return None  # nothing else reads these fields, so they must not stop the reading of objects
    entries = meta.managed_fields or ()
    maker = next((each.manager for each in entries if each.manager in MANAGERS and each.created), "")
    if not maker:
        return None
    return Evidence(f"{kind} {obj.key}", f"{ref.kind} {ref.name}", maker, meta.creation_timestamp or "")


def _names_upstream(raw: bytes) -> bool:
    """Whether the bytes may have an entry of upstream's, in one search: each object that is made passes here."""
    at = raw.find(_MANAGER)
    while at >= 0:
        at += len(_MANAGER)
        if raw.startswith(_NAMES, at):
            return True
        at = raw.find(_MANAGER, at)
    return False
