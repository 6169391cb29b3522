"""From an event of an object of any kind to the controllers of one's own that it wakes.

An object wakes itself, where a controller has objects of its kind for keys. A child wakes its controller, which its
owner reference names by group and kind; a version may change. What index functions said of an object wakes the owners
that it concerns, or leads to those that name it.
"""

from collections.abc import Mapping

import msgspec

from oarlock.controllers.objects.model import OwnerRef, controller_of
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.ownership.orphans import EVERY_OWNER
from oarlock.controllers.routing import Routes, WakeKey, owner_entry

REF, FOR = "ref=", "for="
"""How words of `Whole.keys` begin. REF: an object of one's own names another. FOR: a watched object concerns a key."""

GroupKind = tuple[str, str]


class OwnerQueue(msgspec.Struct, frozen=True):
    """A queue that objects are keys of. `namespaced`: its keys are `<namespace>/<name>`."""

    queue: str
    namespaced: bool = True


class WholeRoutes(msgspec.Struct, frozen=True):
    """Whom the objects of one resource matter to.

    `own`: the queues whose keys they are. `owners`: those of the kinds that may control them. `fan_outs`: the queues
    whose turns look for the owners that name them.
    """

    own: tuple[str, ...] = ()
    owners: Mapping[GroupKind, tuple[OwnerQueue, ...]] = {}
    fan_outs: tuple[str, ...] = ()

    def route(self, obj: Whole, gone: bool) -> Routes:
        """An object was added or changed, or has gone."""
        ref = controller_of(obj)
        wake: list[WakeKey] = [(queue, obj.key) for queue in (*self.own, *self.fan_outs)]
        if ref is not None:
            wake += [(each.queue, _key_of(ref, obj, each)) for each in self.owners.get(group_kind(ref), ())]
        for word in obj.keys:
            if word.startswith(FOR):
                queue, _, key = word.removeprefix(FOR).partition(":")
                wake.append((queue, key))
        warning = f"{obj.key}: {obj.fault}" if obj.fault else ""
        if gone:
            return Routes(wake=tuple(wake), warning=warning)
        entries = (*(() if ref is None else (owner_entry(ref.uid),)), *((EVERY_OWNER,) if self.own else ()), *obj.keys)
        return Routes(entries, tuple(wake), warning)


def _key_of(ref: OwnerRef, obj: Whole, owner: OwnerQueue) -> str:
    return f"{obj.namespace}/{ref.name}" if owner.namespaced else ref.name


def group_kind(ref: OwnerRef) -> GroupKind:
    """Of the owner that a reference names."""
    return ref.api_version.rpartition("/")[0], ref.kind


def names_entry(controller: str, resource: str, key: str) -> str:
    """Index entry of the objects of one's own that name an object of another resource."""
    return f"{REF}{controller}/{resource}/{key}"


def concerns_entry(queue: str, key: str) -> str:
    """Index entry of the watched objects that concern a key."""
    return f"{FOR}{queue}:{key}"


def named(obj: Whole, controller: str, resource: str) -> tuple[str, ...]:
    """The keys of the objects of a resource that an object of one's own names."""
    before = names_entry(controller, resource, "")
    return tuple(word.removeprefix(before) for word in obj.keys if word.startswith(before))
