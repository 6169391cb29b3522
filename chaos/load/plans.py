"""What the load makes: owners of all kinds, and nodes of its own, each with what is to be done to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from oarlock.chaos.judge.evidence.objects import STRICT, VERSION
from oarlock.chaos.judge.evidence.sightings import QUEUE_OF_KIND
from oarlock.cluster import resources
from oarlock.cluster.resources import Resource

READY_AFTER = "oarlock.io/sim-ready-after-ms"
FAIL = "oarlock.io/sim-fail"
NEVER_READY = "oarlock.io/sim-never-ready"
REJECT = "oarlock.io/sim-reject"

NODES = 10
"""Made by the load, beside those of the cluster; what happens to nodes happens to these."""
OURS = "chaos/daemons-only"
"""A taint of these nodes, so that only daemon pods are ever there: no other owner loses a pod with a node."""
HOLD, AWAY = "chaos/hold", "chaos/away"
"""Taints that come and go: NoSchedule and NoExecute."""
ZONE = "chaos/zone"


class Role(StrEnum):
    """What is done to an owner."""

    SCALED = "scaled"
    MIXED = "mixed"
    STRICT = "strict"
    RECREATED = "recreated"
    NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True)
class Plan:
    """One ReplicaSet or ReplicationController: where, what, how large at most."""

    namespace: str
    name: str
    role: Role
    largest: int
    resource: Resource = resources.REPLICASETS

    @property
    def task(self) -> str:
        return f"{QUEUE_OF_KIND[self.resource.kind]}:{self.namespace}/{self.name}"

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


_RC = resources.REPLICATIONCONTROLLERS
PLANS = (
    Plan("chaos-a", "scaled-0", Role.SCALED, 60),
    Plan("chaos-a", "scaled-1", Role.SCALED, 30),
    Plan("chaos-b", "scaled-2", Role.SCALED, 12),
    Plan("chaos-a", "mixed-0", Role.MIXED, 25),
    Plan("chaos-b", "mixed-1", Role.MIXED, 12),
    Plan("chaos-b", "mixed-2", Role.MIXED, 6),
    Plan("chaos-a", "strict-0", Role.STRICT, 20),
    Plan("chaos-b", "strict-1", Role.STRICT, 8),
    Plan("chaos-a", "again-0", Role.RECREATED, 15),
    Plan("chaos-b", "again-1", Role.RECREATED, 6),
    Plan("chaos-c", "spaced-0", Role.NAMESPACE, 8),
    Plan("chaos-a", "rc-scaled-0", Role.SCALED, 25, _RC),
    Plan("chaos-b", "rc-mixed-0", Role.MIXED, 10, _RC),
    Plan("chaos-a", "rc-strict-0", Role.STRICT, 8, _RC),
    Plan("chaos-b", "rc-again-0", Role.RECREATED, 6, _RC),
)


class DaemonRole(StrEnum):
    """What is done to a DaemonSet."""

    ROLLED = "rolled"
    BROKEN = "broken"
    """Rolled, and now and then to a template that fails, or is never ready, until it is mended."""
    ON_DELETE = "on delete"
    RECREATED = "recreated"


@dataclass(frozen=True, slots=True)
class DaemonPlan:
    """One DaemonSet. ``limit``, ``surge``: maxUnavailable or maxSurge; neither: OnDelete. ``zone``: of its nodes."""

    namespace: str
    name: str
    role: DaemonRole
    limit: int | str | None = None
    surge: int | str | None = None
    zone: str = ""
    min_ready_s: int = 0
    tolerates_hold: bool = False

    @property
    def task(self) -> str:
        return f"{QUEUE_OF_KIND['DaemonSet']}:{self.namespace}/{self.name}"


DAEMON_PLANS = (
    DaemonPlan("chaos-a", "two-down", DaemonRole.ROLLED, limit=2),
    DaemonPlan("chaos-a", "surging", DaemonRole.ROLLED, surge="25%"),
    DaemonPlan("chaos-b", "third-down", DaemonRole.BROKEN, limit="30%", tolerates_hold=True),
    DaemonPlan("chaos-b", "slow", DaemonRole.BROKEN, limit="25%", min_ready_s=1, zone="a"),
    DaemonPlan("chaos-b", "on-delete", DaemonRole.ON_DELETE),
    DaemonPlan("chaos-a", "zoned", DaemonRole.ROLLED, limit=1, zone="b"),
    DaemonPlan("chaos-b", "surging-zone", DaemonRole.BROKEN, surge=1, zone="a"),
    DaemonPlan("chaos-a", "again", DaemonRole.RECREATED, limit=2, zone="b"),
)


class RolloutRole(StrEnum):
    """What is done to a Deployment."""

    ROLLED = "rolled"
    """Only templates change, so that nothing excuses a pod too many or too few."""
    BROKEN = "broken"
    """Rolled, and now and then to a template that never gets ready."""
    SCALED = "scaled"
    LIMITED = "limited"
    PAUSED = "paused"
    MIXED = "mixed"
    RECREATED = "recreated"


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """One Deployment. ``surge``, ``unavailable``: its limits; without both its strategy is Recreate."""

    namespace: str
    name: str
    role: RolloutRole
    replicas: int
    surge: int | str | None = None
    unavailable: int | str | None = None
    min_ready_s: int = 0
    history: int = 3

    @property
    def task(self) -> str:
        return f"{QUEUE_OF_KIND['Deployment']}:{self.namespace}/{self.name}"


ROLLOUT_PLANS = (
    RolloutPlan("chaos-a", "shop", RolloutRole.ROLLED, 8, 1, 0),
    RolloutPlan("chaos-b", "shop", RolloutRole.ROLLED, 6, 0, 1),
    RolloutPlan("chaos-a", "cart", RolloutRole.BROKEN, 10, "25%", "25%"),
    RolloutPlan("chaos-b", "slow", RolloutRole.ROLLED, 5, 2, 1, min_ready_s=1, history=1),
    RolloutPlan("chaos-b", "sized", RolloutRole.SCALED, 8, "30%", "20%"),
    RolloutPlan("chaos-a", "limits", RolloutRole.LIMITED, 6, 1, 1),
    RolloutPlan("chaos-b", "paused", RolloutRole.PAUSED, 6, 1, 1),
    RolloutPlan("chaos-a", "mixed", RolloutRole.MIXED, 6, "50%", 1),
    RolloutPlan("chaos-b", "anew", RolloutRole.ROLLED, 5),
    RolloutPlan("chaos-a", "anew", RolloutRole.MIXED, 4, history=0),
    RolloutPlan("chaos-a", "back", RolloutRole.RECREATED, 4, 1, 1),
)


def body(plan: Plan, replicas: int) -> bytes:
    """The owner as it is created."""
    labels = {"app": plan.name}
    annotations = {STRICT: "true"} if plan.role is Role.STRICT else {}
    replicated: dict[str, Any] = {"replicas": replicas, "template": _template(labels, {READY_AFTER: "100"}, {})}
    replicated["selector"] = labels if plan.resource is _RC else {"matchLabels": labels}
    return _object(plan.resource, plan.namespace, plan.name, annotations, replicated)


def daemon_body(plan: DaemonPlan) -> bytes:
    """The DaemonSet as it is created, at version 0 of its template."""
    labels = {"app": plan.name}
    tolerations = [{"key": OURS, "operator": "Exists"}]
    if plan.tolerates_hold:
        tolerations.append({"key": HOLD, "operator": "Exists", "effect": "NoSchedule"})
    placed: dict[str, Any] = {"tolerations": tolerations}
    if plan.zone:
        placed["nodeSelector"] = {ZONE: plan.zone}
    rolling = {"maxUnavailable": plan.limit, "maxSurge": plan.surge}
    strategy: dict[str, Any] = {"type": "OnDelete"}
    if plan.role is not DaemonRole.ON_DELETE:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {name: each or 0 for name, each in rolling.items()}}
    spec = {
        "selector": {"matchLabels": labels},
        "minReadySeconds": plan.min_ready_s,
        "updateStrategy": strategy,
        "template": _template(labels, {READY_AFTER: "100", VERSION: "0"}, placed),
    }
    return _object(resources.DAEMONSETS, plan.namespace, plan.name, {}, spec)


def rollout_body(plan: RolloutPlan) -> bytes:
    """The Deployment as it is created, at version 0 of its template."""
    labels = {"app": f"deployed-{plan.name}"}
    rolling = {"maxSurge": plan.surge, "maxUnavailable": plan.unavailable}
    strategy: dict[str, Any] = {"type": "Recreate"}
    if plan.surge is not None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    spec = {
        "replicas": plan.replicas,
        "selector": {"matchLabels": labels},
        "minReadySeconds": plan.min_ready_s,
        "revisionHistoryLimit": plan.history,
        "strategy": strategy,
        "template": _template(labels, {READY_AFTER: "100", VERSION: "0"}, {}),
    }
    return _object(resources.DEPLOYMENTS, plan.namespace, plan.name, {}, spec)


def node_body(name: str, zone: str) -> bytes:
    """A node as it is added; its simulated kubelet sees to the rest."""
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", ZONE: zone}
    made = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": OURS, "effect": "NoSchedule"}]},
    }
    return orjson.dumps(made)


def _template(labels: dict[str, str], annotations: dict[str, str], placed: dict[str, Any]) -> dict[str, Any]:
    containers = [{"name": "main", "image": "pause:3.9"}]
    spec = {"terminationGracePeriodSeconds": 1, "containers": containers, **placed}
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def _object(resource: Resource, namespace: str, name: str, annotations: dict[str, str], spec: dict[str, Any]) -> bytes:
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return orjson.dumps({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec})
