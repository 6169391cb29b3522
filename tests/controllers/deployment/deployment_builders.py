"""Builders for whole decisions about a Deployment: its ReplicaSets with owner, template and revision."""

from typing import Any

from oarlock.controllers.deployment.annotations import REVISION
from oarlock.controllers.deployment.decide import decide
from oarlock.controllers.deployment.model import Deployment, DeploymentCondition, DeploymentStatus
from oarlock.controllers.deployment.plan import Plan, Snapshot
from oarlock.controllers.objects.model import OwnerRef, ReplicaSet
from tests.controllers.builders import NOW_MS, WEB, S, with_fields
from tests.controllers.deployment.sizes_builders import sized

OURS = OwnerRef("apps/v1", "Deployment", "web", "uid-web", True, True)
THEIRS = OwnerRef("apps/v1", "Deployment", "api", "uid-api", True, True)


def owned(name: str, replicas: int = 0, revision: int | str = "", **fields: Any) -> ReplicaSet:
    """A ReplicaSet of default/web. Its template is the Deployment's if it is called `new` or starts so, else one that
    is named as the ReplicaSet. `age_s`: how long it exists. `notes`: more annotations.
    """
    notes = {REVISION: str(revision)} if revision != "" else {}
    notes |= fields.pop("notes", {})
    base: dict[str, Any] = {
        "labels": dict(WEB),
        "owner_refs": (OURS,),
        "template_digest": "new" if name.startswith("new") else name,
        "created_ms": NOW_MS - fields.pop("age_s", 60) * S,
    }
    replicaset = sized(name, replicas, **(base | fields))
    return with_fields(replicaset, annotations=replicaset.annotations | notes)


def decided(deployment: Deployment, *replicasets: ReplicaSet, **fields: Any) -> Plan:
    """The decision about a Deployment with these ReplicaSets."""
    return decide(Snapshot(deployment, replicasets, **fields), NOW_MS)


def condition(reason: str, status: str = "True", ago_s: float = 60, **fields: Any) -> DeploymentCondition:
    """A condition Progressing that was last updated so long ago, and became what it is twice as long ago."""
    base: dict[str, Any] = {
        "type": "Progressing",
        "status": status,
        "reason": reason,
        "last_update_ms": round(NOW_MS - ago_s * S),
        "last_transition_ms": round(NOW_MS - 2 * ago_s * S),
    }
    return DeploymentCondition(**(base | fields))


def said(*counts: int, reason: str = "", **fields: Any) -> DeploymentStatus:
    """A status with these counts (replicas, updated, ready, available) and, given a reason, the condition."""
    names = ("replicas", "updated", "ready", "available")
    conditions = (condition(reason),) if reason else ()
    base = {"observed_generation": 1, "conditions": conditions} | dict(zip(names, counts, strict=False))
    return DeploymentStatus(**(base | fields))
