"""The classes of entry in the registry: a kind that is watched, controllers of four shapes, queues that fan out.

The class of an entry decides which generator is its turn. A controller with a turn of another shape would be one more
class, and one more case where `workers.turn.engine.turn_engine` begins a turn.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.requests import Requests
from oarlock.controllers.wanted import Wanted
from oarlock.controllers.watched import Watched, owner_kind

__all__ = [
    "OWN_PODS",
    "OWN_PODS_OR_COUNTS",
    "OWN_REPLICASETS",
    "OWN_REVISIONS",
    "Children",
    "Controller",
    "CustomController",
    "DesiredController",
    "FanOut",
    "Found",
    "PodController",
    "ReferenceFanOut",
    "RolloutController",
    "StepsController",
    "Watched",
    "owned_children",
    "owner_kind",
]

Children = tuple[tuple[str, str, str], ...]
"""Cached objects that a turn reads: resource, index, and what is looked up there: the "uid" of the key's object, the
"name" in the key, or the entries that the object itself has "wanted". "counts": as "uid", or how many there are of each
class, where these suffice."""

OWN_PODS: Children = (("pods", "owner", "uid"), ("pods", "orphan", "wanted"))
OWN_PODS_OR_COUNTS: Children = (("pods", "owner", "counts"), ("pods", "orphan", "wanted"))
OWN_REVISIONS: Children = (("controllerrevisions", "owner", "uid"), ("controllerrevisions", "orphan", "wanted"))
OWN_REPLICASETS: Children = (("replicasets", "owner", "uid"), ("replicasets", "orphan", "wanted"))

FLAG_SUFFIX = "-controller"
"""What upstream's names of controllers may end with in --controllers."""


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
    def flag_name(self) -> str:
        """What --controllers calls it, with or without FLAG_SUFFIX."""
        return self.name.removesuffix(FLAG_SUFFIX)

    @property
    def queue(self) -> str:
        """The name of its stream."""
        return self.owners.owner_queue

    @property
    def resource(self) -> str:
        """The resource whose objects are its keys."""
        return self.owners.resource

    @property
    def dependents(self) -> str:
        """The resource of what its owners make: pods, or ReplicaSets."""
        return self.children[0][0]


class PodController(Controller, frozen=True, kw_only=True):
    """A controller of owners of pods. Its turn is `workers.turn.turn`.

    The functions have the signatures of the ReplicaSet's, with another type of owner and snapshot; those that need the
    flavour have it bound. `at_rest`: a plan from the counts of pods, or None where it takes the pods; its controller
    reads "counts". `look_again_ms`: None if the plan itself says when to look again.
    """

    snapshot: Callable[..., Any]
    decide: Callable[[Any, int], Any]
    status: Callable[..., Any]
    status_patch: Callable[..., bytes]
    pod_bodies: Callable[..., Any]
    look_again_ms: Callable[..., int | None] | None = None
    at_rest: Callable[[Any, Mapping[bytes, int]], Any] | None = None
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
        return self.watched.resource


def _fits(_: Whole) -> str:
    return ""


class CustomController(Controller, frozen=True, kw_only=True):
    """A controller of one's own, over objects that are cached whole. Its queue has its name.

    `owned`, `watched`: resources of its children, and of what else it looks at. `names`: those of the latter that its
    own objects name; the others say themselves which keys they concern. `finalizer`: held while something outside is to
    be undone; empty for none. `every_ms`: look at each object so often. `concurrency`: objects at once in a process,
    unless the setting says otherwise; 0: as many as there are. `rate_per_s`: turns that begin in a second in all
    processes together; 0: no bound. `misfit`: why an object does not fit the type that the function gets, as
    `spec.size: is required`; empty if it does.
    """

    owned: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    finalizer: str = ""
    every_ms: int | None = None
    retry_base_ms: int = 5
    retry_max_ms: int = 1_000_000
    concurrency: int = 0
    rate_per_s: float = 0.0
    misfit: Callable[[Whole], str] = _fits
    children: Children = ()

    @property
    def queue(self) -> str:
        """The name of its stream."""
        return self.name

    @property
    def dependents(self) -> str:
        """The resource of its first kind of children; empty if it has none."""
        return self.owned[0] if self.owned else ""


Found = Sequence[tuple[str, Whole]]
"""Objects, each with its resource."""


class DesiredController(CustomController, frozen=True, kw_only=True):
    """A controller that says what is wanted. Its turn is `workers.turn.custom.desired`.

    `want`: gets the object, what it owns and what it watches. Raises UserError. `rivals`: the names of other such
    controllers of these objects that may make children of the same kinds.
    """

    want: Callable[[Whole, Found, Found], Wanted]
    rivals: tuple[str, ...] = ()


class StepsController(CustomController, frozen=True, kw_only=True):
    """A controller that does things one by one. Its turn is `workers.turn.custom.custom_steps`.

    `run`: gets the object and a way to ask for steps. `undo`: the same, of an object that is being deleted and has the
    finalizer; None if there is no finalizer. `undo_reads`: it gets the object whole, read live, not as cached. They
    are called on a thread, or make a coroutine if they are async.
    """

    run: Callable[[Whole, Requests], Any]
    is_async: bool = False
    undo: Callable[[Whole, Requests], Any] | None = None
    undo_is_async: bool = False
    undo_reads: bool = False


class ReferenceFanOut(msgspec.Struct, frozen=True, kw_only=True):
    """A queue whose turns wake the objects of one's own that name an object of a watched kind.

    Its turn is `workers.turn.fan_out`. `owners`: the resource of those objects. `target`: their queue, whose controller
    has the same name.
    """

    queue: str
    watched: Watched[Any]
    owners: str
    target: str
    children: Children = ()

    @property
    def resource(self) -> str:
        """The resource whose objects are its keys."""
        return self.watched.resource


def owned_children(resources: Sequence[str]) -> Children:
    """What a claim brings of the objects that its owner controls."""
    return tuple((resource, "owner", "uid") for resource in resources)
