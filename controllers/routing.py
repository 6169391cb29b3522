"""From an event to the index entries of its object and the keys it wakes. Pure; old wake keys are woken by
whoever keeps them beside the old object, so the present state of the object suffices.

Upstream: the informer handlers of `pkg/controller/replicaset/replica_set.go`. An owner is woken by the name
in the controller reference without looking whether it exists with that UID: a turn about an owner that is
not there ends at once, whereas a lookup might miss one that is there.
"""

from collections.abc import Mapping

import msgspec

from controllers.model import Pod, ReplicaSet, controller_of
from controllers.owner_table import OwnerTable

WakeKey = tuple[str, str]  # queue, and key in it


class Routes(msgspec.Struct, frozen=True):
    """`index`: entries such as `owner=<uid>`. `wake`: queues and keys. `warning`: for the log, or empty."""

    index: tuple[str, ...] = ()
    wake: tuple[WakeKey, ...] = ()
    warning: str = ""


def owner_entry(uid: str) -> str:
    """Index entry of what an owner of that UID controls."""
    return f"owner={uid}"


def orphan_entry(namespace: str) -> str:
    """Index entry of what nobody controls in a namespace."""
    return f"orphan={namespace}"


def node_entry(node_name: str) -> str:
    """Index entry of the pods assigned to a node."""
    return f"node={node_name}"


def route_pod(pod: Pod, gone: bool, queue_of_kind: Mapping[str, str], owners: OwnerTable) -> Routes:
    """A pod was added or changed, or has gone. `queue_of_kind` names the queue of each kind of owner served.

    A pod wakes its controller. An orphan wakes every owner that would adopt it, unless it is on its way out.
    """
    ref = controller_of(pod)
    if gone:
        # Of a pod that has gone only its owner is to be told; nobody counts orphans.
        queue = None if ref is None else queue_of_kind.get(ref.kind)
        return Routes() if ref is None or queue is None else Routes(wake=((queue, f"{pod.namespace}/{ref.name}"),))
    index = [owner_entry(ref.uid) if ref is not None else orphan_entry(pod.namespace)]
    if pod.node_name:
        index.append(node_entry(pod.node_name))
    if ref is not None:
        queue = queue_of_kind.get(ref.kind)
        wake = () if queue is None else ((queue, f"{pod.namespace}/{ref.name}"),)
        return Routes(tuple(index), wake)
    if pod.deleting_ms:
        return Routes(tuple(index))
    found: list[WakeKey] = []
    warning = ""
    for queue in dict.fromkeys(queue_of_kind.values()):
        keys = owners.selecting(queue, pod)
        if len(keys) > 1:
            warning = f"pod {pod.key} is selected by several owners in {queue}: {', '.join(sorted(keys))}"
        found.extend((queue, key) for key in keys)
    return Routes(tuple(index), tuple(found), warning)


def route_owner(owner: ReplicaSet, gone: bool, queue: str) -> Routes:
    """An owner was added or changed, or has gone: it wakes itself, also for a mere change of its status."""
    ref = controller_of(owner)
    index = () if ref is None or gone else (owner_entry(ref.uid),)
    return Routes(index, ((queue, owner.key),))
