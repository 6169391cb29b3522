"""The built-in kinds and their controllers: those of Kubernetes that own pods, and the Deployment.

A new kind is a decision module, a route and an entry here.
"""

from functools import partial
from typing import Any

import msgspec

from oarlock.controllers import columns
from oarlock.controllers.daemonset import bodies as daemon_bodies
from oarlock.controllers.daemonset import decide as daemon_decide
from oarlock.controllers.daemonset import names
from oarlock.controllers.daemonset import plan as daemon_plan
from oarlock.controllers.daemonset import status as daemon_status
from oarlock.controllers.daemonset.node_changes import daemonsets_concerned
from oarlock.controllers.daemonset.wire import daemonset_from_json
from oarlock.controllers.deployment import decide as deployment_decide
from oarlock.controllers.deployment import status as deployment_status
from oarlock.controllers.deployment.wire import deployment_from_json
from oarlock.controllers.entries import (
    OWN_PODS,
    OWN_PODS_OR_COUNTS,
    OWN_REVISIONS,
    FanOut,
    PodController,
    RolloutController,
    Watched,
    owner_kind,
)
from oarlock.controllers.flavour import DAEMONSET, DEPLOYMENT, REPLICASET, REPLICATIONCONTROLLER, Flavour
from oarlock.controllers.history.wire import revision_from_json
from oarlock.controllers.objects import codec, wire
from oarlock.controllers.objects.availability import look_again_ms
from oarlock.controllers.pods.pod_template import pod_bodies
from oarlock.controllers.registry import WATCHED, Entry, owners_of, register
from oarlock.controllers.replicaset import decide
from oarlock.controllers.replicaset import status as replica_status
from oarlock.controllers.replicaset.at_rest import at_rest
from oarlock.controllers.routing import route_node, route_pod, route_replicaset, route_revision, route_rollout
from oarlock.controllers.scheduling.wire import node_from_json

NODE_QUEUE = "daemonset-node-updates"
COUNTED = (REPLICASET.kind, REPLICATIONCONTROLLER.kind, DAEMONSET.kind)
"""Kinds of owner whose pods the cache counts by class, and keeps what those of a class have in common once. The
controllers of the first two decide from the counts where they can.
"""
BY_NODE = (DAEMONSET.kind,)
"""Those that a node's change concerns if a pod of theirs is there. No other pod is indexed by its node."""

PODS = Watched(
    api_version="v1",
    plural="pods",
    kind="Pod",
    short_name="po",
    from_json=wire.pod_from_json,
    decode=codec.decode_pod,
    route=lambda pod, gone, owners: route_pod(pod, gone, owners_of("pods"), owners, COUNTED, BY_NODE),
    columns=columns.POD,
    adoptable=True,
)

NODES = Watched(
    api_version="v1",
    plural="nodes",
    kind="Node",
    short_name="no",
    from_json=node_from_json,
    decode=codec.decode_node,
    route=lambda node, gone, owners: route_node(node, gone, NODE_QUEUE),
    columns=columns.NODE,
    namespaced=False,
)

CONTROLLERREVISIONS = Watched(
    api_version="apps/v1",
    plural="controllerrevisions",
    kind="ControllerRevision",
    short_name="",
    from_json=revision_from_json,
    decode=codec.decode_revision,
    route=lambda revision, gone, owners: route_revision(revision, gone, owners_of("controllerrevisions"), owners),
    columns=columns.REVISION,
    adoptable=True,
)

REPLICASETS = msgspec.structs.replace(
    owner_kind(
        REPLICASET,
        plural="replicasets",
        short_name="rs",
        queue="replicaset",
        from_json=wire.replicaset_from_json,
        decode=codec.decode_replicaset,
        columns=columns.REPLICAS,
    ),
    route=lambda owner, gone, owners: route_replicaset(owner, gone, "replicaset", owners_of("replicasets"), owners),
    adoptable=True,
)

REPLICATIONCONTROLLERS = owner_kind(
    REPLICATIONCONTROLLER,
    plural="replicationcontrollers",
    short_name="rc",
    queue="replicationmanager",
    from_json=wire.replicationcontroller_from_json,
    decode=codec.decode_replicaset,
    columns=columns.REPLICAS,
)

DAEMONSETS = owner_kind(
    DAEMONSET,
    plural="daemonsets",
    short_name="ds",
    queue="daemonset",
    from_json=daemonset_from_json,
    decode=codec.decode_daemonset,
    columns=columns.DAEMONSET,
    base_of=names.base_of,
)

DEPLOYMENTS = Watched(
    api_version="apps/v1",
    plural="deployments",
    kind="Deployment",
    short_name="deploy",
    from_json=deployment_from_json,
    decode=codec.decode_deployment,
    route=lambda owner, gone, owners: route_rollout(owner, gone, "deployment"),
    columns=columns.DEPLOYMENT,
    owner_queue="deployment",
    template_apart=True,
)


def _replicas(name: str, flavour: Flavour, owners: Watched[Any], concurrent_syncs: str) -> PodController:
    """The controller of a kind that keeps a number of equal pods."""
    return PodController(
        name=name,
        owners=owners,
        concurrent_syncs=concurrent_syncs,
        flavour=flavour,
        snapshot=decide.snapshot,
        decide=partial(decide.decide, flavour=flavour),
        status=replica_status.status,
        status_patch=replica_status.status_patch,
        pod_bodies=partial(pod_bodies, flavour=flavour),
        look_again_ms=look_again_ms,
        at_rest=at_rest,
        children=OWN_PODS_OR_COUNTS,
    )


_ENTRIES: tuple[Entry, ...] = (
    PODS,
    NODES,
    _replicas("replicaset-controller", REPLICASET, REPLICASETS, "concurrent_replicaset_syncs"),
    _replicas("replicationcontroller-controller", REPLICATIONCONTROLLER, REPLICATIONCONTROLLERS, "concurrent_rc_syncs"),
    PodController(
        name="daemonset-controller",
        owners=DAEMONSETS,
        concurrent_syncs="concurrent_daemonset_syncs",
        flavour=DAEMONSET,
        snapshot=daemon_plan.snapshot,
        decide=daemon_decide.decide,
        status=daemon_status.status,
        status_patch=daemon_status.status_patch,
        pod_bodies=daemon_bodies.DaemonPodBodies,
        children=(*OWN_PODS, *OWN_REVISIONS),
        local_caches=("nodes",),
        history=True,
    ),
    CONTROLLERREVISIONS,
    RolloutController(
        name="deployment-controller",
        owners=DEPLOYMENTS,
        concurrent_syncs="concurrent_deployment_syncs",
        flavour=DEPLOYMENT,
        decide=deployment_decide.decide,
        status=deployment_status.status,
    ),
    FanOut(
        queue=NODE_QUEUE,
        watched=NODES,
        owners=DAEMONSETS.plural,
        target=DAEMONSETS.owner_queue,
        concerned=daemonsets_concerned,
        children=(("pods", "node", "name"),),
    ),
)


def register_builtin() -> None:
    """Make the built-in kinds known to this process. Its entry point calls this, and it may be called again."""
    if PODS.plural not in WATCHED:
        for entry in _ENTRIES:
            register(entry)
