"""The controllers there are, and the resources they watch. A new kind is a decision module, a route and an
entry.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from oarlock.controllers.daemonset import bodies as daemon_bodies
from oarlock.controllers.daemonset import decide as daemon_decide
from oarlock.controllers.daemonset import names
from oarlock.controllers.daemonset import plan as daemon_plan
from oarlock.controllers.daemonset import status as daemon_status
from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.daemonset.node_changes import daemonsets_concerned
from oarlock.controllers.daemonset.wire import daemonset_from_json
from oarlock.controllers.flavour import DAEMONSET, REPLICASET, REPLICATIONCONTROLLER, Flavour
from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.history.wire import revision_from_json
from oarlock.controllers.objects import codec, wire
from oarlock.controllers.objects.availability import look_again_ms
from oarlock.controllers.objects.model import Pod, ReplicaSet
from oarlock.controllers.ownership.owner_table import OwnerTable
from oarlock.controllers.pods import slots
from oarlock.controllers.pods.pod_template import pod_bodies
from oarlock.controllers.replicaset import decide
from oarlock.controllers.replicaset import status as replica_status
from oarlock.controllers.routing import Routes, route_node, route_owner, route_pod, route_revision
from oarlock.controllers.scheduling.model import Node
from oarlock.controllers.scheduling.wire import node_from_json

T = TypeVar("T")

Children = tuple[tuple[str, str, str], ...]
"""Cached objects that a turn reads: resource, index, and by what of the key: "uid" of its object, its "name", or what
its object says is "wanted"."""

_OWN_PODS: Children = (("pods", "owner", "uid"), ("pods", "orphan", "wanted"))
_OWN_REVISIONS: Children = (("controllerrevisions", "owner", "uid"), ("controllerrevisions", "orphan", "wanted"))

NODE_QUEUE = "daemonset-node-updates"


class Resource(msgspec.Struct, Generic[T], frozen=True):
    """A kind of object that is watched: where it is found, and how it becomes a projection, a blob and
    routes.

    `api_version` is `v1` or `<group>/<version>`, `plural` the last part of its path. `route` gets the
    projection, whether it has gone, and the owners known; `owner_queue` is the queue whose keys these
    objects are, or empty. `adoptable`: one without a controller may find one. `apart`: name and bytes of what is
    kept beside the blob, once for all objects that have the same. `namespaced`: a key is `<namespace>/<name>`, else the
    bare name.
    """

    api_version: str
    plural: str
    kind: str
    from_json: Callable[[bytes], tuple[str, T]]
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]
    route: Callable[[T, bool, OwnerTable], Routes]
    owner_queue: str = ""
    adoptable: bool = False
    apart: Callable[[T], tuple[str, bytes]] | None = None
    namespaced: bool = True


class Controller(msgspec.Struct, frozen=True):
    """One controller: names, the resource its keys stand for, and its functions.

    `name` is what --controllers of kube-controller-manager calls it, `queue` names its stream. The
    functions have the signatures of those of the ReplicaSet, each with its own kind of owner and snapshot;
    those that need the flavour have it bound. `children` are read with each key, pods first; `mirrors` are
    the resources of which a worker has a copy. `look_again_ms` is None where the plan itself says when to
    look again. `history`: the owner keeps revisions of its template.
    """

    name: str
    queue: str
    flavour: Flavour
    resource: str
    snapshot: Callable[..., Any]
    decide: Callable[[Any, int], Any]
    status: Callable[..., Any]
    status_patch: Callable[..., bytes]
    look_again_ms: Callable[..., int | None] | None
    pod_bodies: Callable[..., Any]
    children: Children = _OWN_PODS
    mirrors: tuple[str, ...] = ()
    history: bool = False


class Relay(msgspec.Struct, frozen=True):
    """A queue whose turns write nothing: each looks at its object and tells the owners whom it concerns.

    `owners` is the resource of which all are looked at. `concerned` gets the name of the object, the object
    or None where it has gone, the children, and the owners, and gives keys of `target`.
    """

    queue: str
    resource: str
    owners: str
    target: str
    concerned: Callable[[str, Any, Sequence[Any], Sequence[Any]], Sequence[str]]
    children: Children = ()


def _replicas(flavour: Flavour, name: str, queue: str, resource: str) -> Controller:
    """A kind that keeps a number of equal pods."""
    return Controller(
        name=name,
        queue=queue,
        flavour=flavour,
        resource=resource,
        snapshot=decide.snapshot,
        decide=partial(decide.decide, flavour=flavour),
        status=replica_status.status,
        status_patch=replica_status.status_patch,
        look_again_ms=look_again_ms,
        pod_bodies=partial(pod_bodies, flavour=flavour),
    )


CONTROLLERS: dict[str, Controller] = {
    controller.queue: controller
    for controller in (
        _replicas(REPLICASET, "replicaset-controller", "replicaset", "replicasets"),
        _replicas(
            REPLICATIONCONTROLLER, "replicationcontroller-controller", "replicationmanager", "replicationcontrollers"
        ),
        Controller(
            name="daemonset-controller",
            queue="daemonset",
            flavour=DAEMONSET,
            resource="daemonsets",
            snapshot=daemon_plan.snapshot,
            decide=daemon_decide.decide,
            status=daemon_status.status,
            status_patch=daemon_status.status_patch,
            look_again_ms=None,
            pod_bodies=daemon_bodies.pod_bodies,
            children=(*_OWN_PODS, *_OWN_REVISIONS),
            mirrors=("nodes",),
            history=True,
        ),
    )
}

RELAYS: dict[str, Relay] = {
    relay.queue: relay
    for relay in (
        Relay(
            queue=NODE_QUEUE,
            resource="nodes",
            owners="daemonsets",
            target="daemonset",
            concerned=daemonsets_concerned,
            children=(("pods", "node", "name"),),
        ),
    )
}

QUEUES: tuple[str, ...] = (*CONTROLLERS, *RELAYS)

QUEUE_OF_KIND: dict[str, str] = {c.flavour.kind: c.queue for c in CONTROLLERS.values()}
_HISTORY_QUEUE_OF_KIND = {c.flavour.kind: c.queue for c in CONTROLLERS.values() if c.history}


def resource_of(queue: str) -> str:
    """The resource whose objects are the keys of a queue."""
    return CONTROLLERS[queue].resource if queue in CONTROLLERS else RELAYS[queue].resource


def _route_pod(pod: Pod, gone: bool, owners: OwnerTable) -> Routes:
    return route_pod(pod, gone, QUEUE_OF_KIND, owners)


def _route_revision(revision: ControllerRevision, gone: bool, owners: OwnerTable) -> Routes:
    return route_revision(revision, gone, _HISTORY_QUEUE_OF_KIND, owners)


def _route_node(node: Node, gone: bool, owners: OwnerTable) -> Routes:
    return route_node(node, gone, NODE_QUEUE)


def _owner_route(
    queue: str, base_of: Callable[[str], str] = slots.base_of
) -> Callable[[Any, bool, OwnerTable], Routes]:
    return lambda owner, gone, owners: route_owner(owner, gone, queue, base_of)


PODS: Resource[Pod] = Resource(
    api_version="v1",
    plural="pods",
    kind="Pod",
    from_json=wire.pod_from_json,
    encode=codec.encode,
    decode=codec.decode_pod,
    route=_route_pod,
    adoptable=True,
)

REPLICASETS: Resource[ReplicaSet] = Resource(
    api_version="apps/v1",
    plural="replicasets",
    kind="ReplicaSet",
    from_json=wire.replicaset_from_json,
    encode=codec.encode_apart,
    decode=codec.decode_replicaset,
    apart=codec.template_apart,
    route=_owner_route("replicaset"),
    owner_queue="replicaset",
)

REPLICATIONCONTROLLERS: Resource[ReplicaSet] = Resource(
    api_version="v1",
    plural="replicationcontrollers",
    kind="ReplicationController",
    from_json=wire.replicationcontroller_from_json,
    encode=codec.encode_apart,
    decode=codec.decode_replicaset,
    apart=codec.template_apart,
    route=_owner_route("replicationmanager"),
    owner_queue="replicationmanager",
)

DAEMONSETS: Resource[DaemonSet] = Resource(
    api_version="apps/v1",
    plural="daemonsets",
    kind="DaemonSet",
    from_json=daemonset_from_json,
    encode=codec.encode_apart,
    decode=codec.decode_daemonset,
    apart=codec.template_apart,
    route=_owner_route("daemonset", names.base_of),
    owner_queue="daemonset",
)

CONTROLLERREVISIONS: Resource[ControllerRevision] = Resource(
    api_version="apps/v1",
    plural="controllerrevisions",
    kind="ControllerRevision",
    from_json=revision_from_json,
    encode=codec.encode,
    decode=codec.decode_revision,
    route=_route_revision,
    adoptable=True,
)

NODES: Resource[Node] = Resource(
    api_version="v1",
    plural="nodes",
    kind="Node",
    from_json=node_from_json,
    encode=codec.encode,
    decode=codec.decode_node,
    route=_route_node,
    namespaced=False,
)

RESOURCES: Mapping[str, Resource[Any]] = {
    resource.plural: resource
    for resource in (PODS, NODES, REPLICASETS, REPLICATIONCONTROLLERS, DAEMONSETS, CONTROLLERREVISIONS)
}
