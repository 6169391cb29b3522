"""The controllers there are, and the resources they watch. A new kind is a decision module, a route and an
entry.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from controllers import codec, wire
from controllers.availability import look_again_ms
from controllers.flavour import REPLICASET, Flavour
from controllers.model import Pod, ReplicaSet
from controllers.owner_table import OwnerTable
from controllers.pod_template import pod_bodies
from controllers.replicaset import decide
from controllers.routing import Routes, route_owner, route_pod
from controllers.status import status, status_patch

T = TypeVar("T")


class Resource(msgspec.Struct, Generic[T], frozen=True):
    """A kind of object that is watched: where it is found, and how it becomes a projection, a blob and
    routes.

    `group_version` is `v1` or `<group>/<version>`, `plural` the last part of its path. `route` gets the
    projection, whether it has gone, and the owners known; `owner_queue` is the queue whose keys these
    objects are, or empty.
    """

    group_version: str
    plural: str
    kind: str
    from_json: Callable[[bytes], tuple[str, T]]
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]
    route: Callable[[T, bool, OwnerTable], Routes]
    owner_queue: str = ""

    @property
    def path(self) -> str:
        """The collection over all namespaces, below the server's root, such as /apis/apps/v1/replicasets."""
        root = "apis" if "/" in self.group_version else "api"
        return f"/{root}/{self.group_version}/{self.plural}"


class Controller(msgspec.Struct, frozen=True):
    """One controller: names, the resource its keys stand for, and its functions.

    `name` is what --controllers of kube-controller-manager calls it, `queue` names its stream. The
    functions have the signatures of those of the ReplicaSet, each with its own kind of owner, snapshot and
    plan; `decide` and `pod_bodies` have their flavour bound.
    """

    name: str
    queue: str
    flavour: Flavour
    resource: str
    decide: Callable[[Any, int], Any]
    status: Callable[..., Any]
    status_patch: Callable[..., bytes]
    look_again_ms: Callable[..., int | None]
    pod_bodies: Callable[[Any], Any]


CONTROLLERS: dict[str, Controller] = {
    controller.queue: controller
    for controller in (
        Controller(
            name="replicaset-controller",
            queue="replicaset",
            flavour=REPLICASET,
            resource="replicasets",
            decide=partial(decide, flavour=REPLICASET),
            status=status,
            status_patch=status_patch,
            look_again_ms=look_again_ms,
            pod_bodies=partial(pod_bodies, flavour=REPLICASET),
        ),
    )
}

QUEUE_OF_KIND: dict[str, str] = {c.flavour.kind: c.queue for c in CONTROLLERS.values()}


def _route_pod(pod: Pod, gone: bool, owners: OwnerTable) -> Routes:
    return route_pod(pod, gone, QUEUE_OF_KIND, owners)


def _route_replicaset(owner: ReplicaSet, gone: bool, owners: OwnerTable) -> Routes:
    return route_owner(owner, gone, "replicaset")


PODS: Resource[Pod] = Resource(
    group_version="v1",
    plural="pods",
    kind="Pod",
    from_json=wire.pod_from_json,
    encode=codec.encode,
    decode=codec.decode_pod,
    route=_route_pod,
)

REPLICASETS: Resource[ReplicaSet] = Resource(
    group_version="apps/v1",
    plural="replicasets",
    kind="ReplicaSet",
    from_json=wire.replicaset_from_json,
    encode=codec.encode,
    decode=codec.decode_replicaset,
    route=_route_replicaset,
    owner_queue="replicaset",
)

RESOURCES: dict[str, Resource[Any]] = {resource.plural: resource for resource in (PODS, REPLICASETS)}
