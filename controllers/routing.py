"""From an event to the index entries of its object and the keys it wakes.

The present state of the object suffices: the cache keeps the wake keys of the former state, and wakes those too.

Upstream: the informer handlers of `pkg/controller/replicaset/replica_set.go` and
`pkg/controller/daemon/daemon_controller.go`. The name in the controller reference wakes an owner, without a look
whether an owner with that UID exists: a turn about an absent owner ends at once, but a lookup might miss a present one.
"""

from collections.abc import Callable, Collection, Mapping

import msgspec

from oarlock.controllers.objects.model import Pod, ReplicaSet, controller_of
from oarlock.controllers.ownership.claim import Claimable, Claimer
from oarlock.controllers.ownership.orphans import labels_to_look_for, places_by_label, places_by_name, where_to_look
from oarlock.controllers.ownership.owner_table import OwnerTable
from oarlock.controllers.pods import slots
from oarlock.controllers.pods.classes import asked_word, class_of
from oarlock.controllers.scheduling.model import Node

WakeKey = tuple[str, str]  # queue, and key in it
LOCAL_CACHE_ENTRY = "mirror"  # its older name, which Redis keeps
"""Index entry of objects that every worker keeps a copy of: Redis keeps their changes in order."""


class Routes(msgspec.Struct, frozen=True):
    """`index`: entries such as `owner=<uid>`, and words about where to look (see orphans.py). `wake`: queues and keys.
    `warning`: for the log, or empty. `kind`: the class that the object counts under with its owner, or empty.
    `observed`: it is an owner whose controller has observed its generation.
    """

    index: tuple[str, ...] = ()
    wake: tuple[WakeKey, ...] = ()
    warning: str = ""
    kind: bytes = b""
    observed: bool = False


def owner_entry(uid: str) -> str:
    """Index entry of the objects that the owner of that UID controls."""
    return f"owner={uid}"


def node_entry(node_name: str) -> str:
    """Index entry of the pods assigned or pinned to a node, of kinds that look there."""
    return f"node={node_name}"


def route_pod(
    pod: Pod,
    gone: bool,
    queue_of_kind: Mapping[str, str],
    owners: OwnerTable,
    counted: Collection[str] = (),
    by_node: Collection[str] = (),
) -> Routes:
    """A pod was added or changed, or has gone. A pod that is pinned to a node counts as being there. One that has gone
    wakes the owners two levels up that waited for it, too. `counted`: kinds whose pods the cache counts by class.
    `by_node`: kinds whose pods are looked up by node.
    """
    if gone:
        routes = route_dependent(pod, gone, queue_of_kind, owners)
        waiting = owners.waiting_for(pod)
        return Routes(wake=(*routes.wake, *waiting)) if waiting else routes
    ref = controller_of(pod)
    if ref is None:
        return route_dependent(pod, gone, queue_of_kind, owners, places_by_name(pod.namespace, pod.name))
    node = pod.target_node if ref.kind in by_node else ""
    more = (node_entry(node),) if node else ()
    kind = class_of(pod) if ref.kind in counted else b""
    return route_dependent(pod, gone, queue_of_kind, owners, more, kind)


def route_dependent(
    obj: Claimable,
    gone: bool,
    queue_of_kind: Mapping[str, str],
    owners: OwnerTable,
    more_index: tuple[str, ...] = (),
    kind: bytes = b"",
) -> Routes:
    """A pod, a revision or a ReplicaSet was added or changed, or has gone. `queue_of_kind`: the queues of the kinds of
    owner to wake.

    The object wakes its controller. An orphan wakes every owner that would adopt it, unless it is being deleted.
    """
    ref = controller_of(obj)
    if ref is not None:
        queue = queue_of_kind.get(ref.kind)
        wake = () if queue is None else ((queue, f"{obj.namespace}/{ref.name}"),)
        return Routes(wake=wake) if gone else Routes((owner_entry(ref.uid), *more_index), wake, kind=kind)
    if gone:
        return Routes()  # nobody counts orphans
    index = (*places_by_label(obj.namespace, obj.labels), *more_index)
    if obj.deleting_ms:
        return Routes(index)
    found: list[WakeKey] = []
    warning = ""
    for queue in dict.fromkeys(queue_of_kind.values()):
        keys = owners.selecting(queue, obj)
        if len(keys) > 1:
            warning = f"{obj.key} is selected by several owners in {queue}: {', '.join(sorted(keys))}"
        found.extend((queue, key) for key in keys)
    return Routes(index, tuple(found), warning)


def route_revision(revision: Claimable, gone: bool, queue_of_kind: Mapping[str, str], owners: OwnerTable) -> Routes:
    """A revision was added or changed, or has gone. One that stays and has a controller wakes nobody. Its set may have
    made it; if a person made it, the set looks at it when something else wakes the set. A set that waits for a revision
    of its own is woken when the cache has passed it.

    Upstream: addHistory, updateHistory and deleteHistory; there a change of it, unlike its coming, wakes the set.
    """
    routes = route_dependent(revision, gone, queue_of_kind, owners)
    if gone or revision.deleting_ms or controller_of(revision) is None:
        return routes
    return Routes(routes.index)


def route_owner(owner: Claimer, gone: bool, queue: str, base_of: Callable[[str], str]) -> Routes:
    """An owner was added or changed, or has gone. It wakes itself, even if only its status changed.

    `base_of`: from the owner's name to the beginning of its pods' names.
    """
    ref, wake = controller_of(owner), ((queue, owner.key),)
    if gone:
        return Routes(wake=wake)
    look = where_to_look(owner.namespace, owner.selector, base_of(owner.name))
    if isinstance(owner, ReplicaSet):
        look += asked_word(owner)
    return Routes(look if ref is None else (owner_entry(ref.uid), *look), wake, observed=owner.is_observed)


def route_replicaset(
    replicaset: ReplicaSet, gone: bool, queue: str, queue_of_kind: Mapping[str, str], owners: OwnerTable
) -> Routes:
    """A ReplicaSet was added or changed, or has gone. It is an owner of pods, and a dependent of a Deployment: it wakes
    itself and its controller, or every Deployment that would adopt it. `queue_of_kind`: the queues of kinds that own
    ReplicaSets.

    Upstream: addReplicaSet, updateReplicaSet and deleteReplicaSet of
    `pkg/controller/deployment/deployment_controller.go`.
    """
    own = route_owner(replicaset, gone, queue, slots.base_of)
    above = route_dependent(replicaset, gone, queue_of_kind, owners)
    index = tuple(dict.fromkeys((*own.index, *above.index)))
    return Routes(index, (*own.wake, *above.wake), above.warning, observed=own.observed)


def route_rollout(owner: Claimer, gone: bool, queue: str) -> Routes:
    """An owner of ReplicaSets was added or changed, or has gone. It wakes itself, even if only its status changed."""
    wake = ((queue, owner.key),)
    if gone:
        return Routes(wake=wake)
    return Routes(labels_to_look_for(owner.namespace, owner.selector), wake, observed=owner.is_observed)


def route_node(node: Node, gone: bool, queue: str) -> Routes:
    """A node was added, or its labels or taints have changed, or it has gone."""
    return Routes(() if gone else (LOCAL_CACHE_ENTRY,), ((queue, node.name),))
