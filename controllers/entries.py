"""The classes of entry in the registry: a kind that is watched, controllers of two shapes, a queue that fans out.

The class of an entry decides which generator is its turn. A controller with a turn of another shape would be one more
class, and one more case where `workers.turn.engine.engine` begins a turn.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from oarlock.controllers.columns import Columns
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects import codec
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.ownership.owner_table import OwnerTable
from oarlock.controllers.pods import slots
from oarlock.controllers.routing import Routes, route_owner

T = TypeVar("T")
OwnerT = TypeVar("OwnerT", bound=Claimer)

Children = tuple[tuple[str, str, str], ...]
"""Cached objects that a turn reads: resource, index, and what is looked up there: the "uid" of the key's object, the
"name" in the key, or the entries that the object itself has "wanted"."""

OWN_PODS: Children = (("pods", "owner", "uid"), ("pods", "orphan", "wanted"))
OWN_REVISIONS: Children = (("controllerrevisions", "owner", "uid"), ("controllerrevisions", "orphan", "wanted"))
OWN_REPLICASETS: Children = (("replicasets", "owner", "uid"), ("replicasets", "orphan", "wanted"))


class Watched(msgspec.Struct, Generic[T], frozen=True):
    """A kind whose objects are watched and cached.

    `api_version`: `v1` or `<group>/<version>`. `plural`: the last part of its path. `short_name`: kubectl's, or empty.
    `from_json`: an object's resourceVersion and projection. `decode`: the projection in a blob of the cache.
    `route`: gets the projection, whether the object has gone, and the owners known; returns index entries and keys.
    `columns`: of `oarlock get`, beside name, age and resourceVersion: heading -> cell.
    `namespaced`: keys are `<namespace>/<name>`; otherwise they are bare names.
    `owner_queue`: the queue whose keys these objects are; empty if no controller acts on them.
    `adoptable`: an owner may adopt an object of this kind that has no controller.
    `template_apart`: the cache keeps the pod template beside the blob, once for all owners with the same template.
    """

    api_version: str
    plural: str
    kind: str
    short_name: str
    from_json: Callable[[bytes], tuple[str, T]]
    decode: Callable[[bytes], T]
    route: Callable[[T, bool, OwnerTable], Routes]
    columns: Columns = {}
    namespaced: bool = True
    owner_queue: str = ""
    adoptable: bool = False
    template_apart: bool = False

    @property
    def group(self) -> str:
        """The API group; empty for the core API."""
        return self.api_version.rpartition("/")[0]

    def is_called(self, word: str) -> bool:
        """Whether the word, in lower case, names the kind as kubectl takes it: plural, singular or short."""
        return bool(word) and word in (self.plural, self.kind.lower(), self.short_name)

    def encode(self, obj: T) -> bytes:
        """The blob of a projection, without a template that is kept beside it."""
        return codec.encode_apart(obj) if self.template_apart else codec.encode(obj)

    def apart(self, obj: T) -> tuple[str, bytes] | None:
        """Name and bytes of the template that is kept beside the blob; None if nothing is."""
        return codec.template_apart(obj) if self.template_apart else None


def owner_kind(
    flavour: Flavour,
    plural: str,
    short_name: str,
    queue: str,
    from_json: Callable[[bytes], tuple[str, OwnerT]],
    decode: Callable[[bytes], OwnerT],
    columns: Columns,
    base_of: Callable[[str], str] = slots.base_of,
) -> Watched[OwnerT]:
    """A kind of owner of pods. Its projection has a `template`. `base_of`: from an owner's name to the beginning of its
    pods' names.
    """
    return Watched(
        api_version=flavour.api_version,
        plural=plural,
        kind=flavour.kind,
        short_name=short_name,
        from_json=from_json,
        decode=decode,
        route=lambda owner, gone, owners: route_owner(owner, gone, queue, base_of),
        columns=columns,
        owner_queue=queue,
        template_apart=True,
    )


class Controller(msgspec.Struct, frozen=True, kw_only=True):
    """What controllers of every shape have.

    `name`: its name in --controllers of kube-controller-manager. `owners`: the kind whose objects are its keys.
    `concurrent_syncs`: the setting that limits how many of them one process syncs at once. `flavour`: what it calls
    itself in owner references and events. `children`: read with each key, first what its owners make.
    `local_caches`: resources that each worker keeps a copy of. `history`: an owner keeps revisions of its template.
    """

    name: str
    owners: Watched[Any]
    concurrent_syncs: str
    flavour: Flavour
    children: Children
    local_caches: tuple[str, ...] = ()
    history: bool = False

    @property
    def queue(self) -> str:
        """The name of its stream."""
        return self.owners.owner_queue

    @property
    def resource(self) -> str:
        """The resource whose objects are its keys."""
        return self.owners.plural

    @property
    def dependents(self) -> str:
        """The resource of what its owners make: pods, or ReplicaSets."""
        return self.children[0][0]


class PodController(Controller, frozen=True, kw_only=True):
    """A controller of owners of pods. Its turn is `workers.turn.turn`.

    The functions have the signatures of the ReplicaSet's, with another type of owner and snapshot; those that need the
    flavour have it bound. `look_again_ms`: None if the plan itself says when to look again.
    """

    snapshot: Callable[..., Any]
    decide: Callable[[Any, int], Any]
    status: Callable[..., Any]
    status_patch: Callable[..., bytes]
    pod_bodies: Callable[..., Any]
    look_again_ms: Callable[..., int | None] | None = None
    children: Children = OWN_PODS


class RolloutController(Controller, frozen=True, kw_only=True):
    """A controller of owners of ReplicaSets. Its turn is `workers.turn.rollout`. The functions have the signatures of
    the Deployment's.
    """

    decide: Callable[[Any, int], Any]
    status: Callable[..., Any]
    children: Children = OWN_REPLICASETS


class FanOut(msgspec.Struct, frozen=True, kw_only=True):
    """A queue whose turns write nothing: each reads its object and wakes the owners that the object concerns.

    Its turn is `workers.turn.fan_out`.

    `watched`: the kind whose objects are its keys. `owners`: the resource whose objects may be concerned.
    `target`: the queue of those owners. `concerned`: gets the name of the object, the object (None if it has gone), the
    children and all owners; returns keys of `target`.
    """

    queue: str
    watched: Watched[Any]
    owners: str
    target: str
    concerned: Callable[[str, Any, Sequence[Any], Sequence[Any]], Sequence[str]]
    children: Children = ()

    @property
    def resource(self) -> str:
        """The resource whose objects are its keys."""
        return self.watched.plural
