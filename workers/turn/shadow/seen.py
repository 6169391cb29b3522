"""What a turn saw of an owner, kept so that the next turn over it sees what upstream has done since."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from oarlock.broker.values.claims import Claim
from oarlock.controllers.daemonset.model import ON_DELETE
from oarlock.controllers.deployment.annotations import REVISION
from oarlock.controllers.deployment.sizing.sizes import is_observed
from oarlock.controllers.entries import Controller
from oarlock.controllers.history.model import HASH_LABEL as REVISION_LABEL
from oarlock.controllers.objects.availability import is_available
from oarlock.controllers.objects.codec import encode
from oarlock.controllers.objects.model import Condition, Pod, ReplicaSet, controller_of, is_finished
from oarlock.controllers.registry import CONTROLLERS, WATCHED
from oarlock.workers.turn import blob_memo
from oarlock.workers.turn.engine.dry_run import Decision

ACTIVE, ENDING, FINISHED = "active", "ending", "finished"


class Child(msgspec.Struct, frozen=True, array_like=True):
    """A pod or ReplicaSet of the owner. ``like``: for which of several alike the rules leave the choice open. ``size``:
    of a ReplicaSet; ``settled``: its pods have followed it. ``digest``: of all that upstream's controller of the owner
    does not write itself.
    """

    name: str
    state: str
    digest: str
    node: str = ""
    size: int = 0
    like: tuple[bool, str, int] = (False, "", 0)
    cost: int = 0
    restarts: int = 0
    ready_ms: int = 0
    created_ms: int = 0
    settled: bool = True
    revision: str = ""
    labels: str = ""


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """``resource``: of the children. ``spec``: digest of the owner without what its controller writes. ``children``: by
    UID. ``orphans``: the labels of those that may be adopted, by UID. ``nodes``: version of the nodes, where they
    matter. ``on_delete``: only people delete daemon pods of an older revision. ``refused``: the status says that
    pods are refused. ``ready_seconds``: minReadySeconds of a ReplicaSet that a Deployment has.
    """

    uid: str
    resource: str
    spec: str
    children: Mapping[str, Child]
    orphans: Mapping[str, str] = {}
    nodes: str = ""
    on_delete: bool = False
    refused: bool = False
    ready_seconds: int = 0
    beyond: str = ""
    """Digest of what the turn looked at beside the children: under Recreate, the pods of a Deployment."""
    rv: str = ""
    """resourceVersion that the children equal: what saw less comes too late."""


def seen(decision: Decision) -> Seen:
    """What its turn saw. There is an owner."""
    claim = decision.claim
    assert claim.owner is not None
    controller = CONTROLLERS[claim.queue]
    owner = WATCHED[controller.resource].decode(claim.owner.blob)
    children: dict[str, Child] = {}
    orphans: dict[str, str] = {}
    for obj, cached in zip(_decoded(controller, claim), claim.children, strict=True):
        ref = controller_of(obj)
        if ref is None:
            orphans[obj.uid] = _digest(encode(obj.labels))
        elif ref.uid == owner.uid:
            children[obj.uid] = (
                _pod(obj, cached.blob, owner, claim.now_ms) if isinstance(obj, Pod) else _replicaset(obj)
            )
    conditions: tuple[Condition, ...] = getattr(owner.status, "conditions", ())
    refused = any(each.type == "ReplicaFailure" and each.status == "True" for each in conditions)
    ref = controller_of(owner)
    ready_seconds = owner.min_ready_seconds if ref is not None and ref.kind == "Deployment" else 0
    return Seen(
        owner.uid,
        controller.dependents,
        _spec(owner),
        children,
        orphans,
        decision.nodes,
        getattr(owner, "strategy", "") == ON_DELETE,
        refused,
        ready_seconds,
        decision.beyond,
        decision.rv,
    )


def _decoded(controller: Controller, claim: Claim) -> tuple[Any, ...]:
    if controller.dependents == "pods":
        return tuple(blob_memo.PODS.decode(claim.children))
    return tuple(blob_memo.owners(controller.dependents).decode(claim.children))


def _spec(owner: Any) -> str:
    bare: dict[str, Any] = {"status": type(owner.status)()}
    if isinstance(owner, ReplicaSet):
        bare["annotations"] = {}
    elif hasattr(owner, "annotations"):
        bare["annotations"] = {name: text for name, text in sorted(owner.annotations.items()) if name != REVISION}
    return _digest(encode(msgspec.structs.replace(owner, **bare)))


def _pod(pod: Pod, blob: bytes, owner: Any, now_ms: int) -> Child:
    state = ENDING if pod.deleting_ms else FINISHED if is_finished(pod) else ACTIVE
    ready = pod.ready + is_available(pod, owner.min_ready_seconds, now_ms)
    revision = pod.labels.get(REVISION_LABEL, "")
    like = (pod.node_name != "", f"{pod.phase} {revision}".rstrip(), ready)
    return Child(
        pod.name,
        state,
        _digest(blob),
        pod.target_node,
        like=like,
        cost=pod.deletion_cost,
        restarts=pod.restarts,
        ready_ms=pod.ready_since_ms,
        created_ms=pod.created_ms,
        revision=revision,
        labels=_digest(encode(pod.labels)),
    )


def _replicaset(replicaset: ReplicaSet) -> Child:
    bare = msgspec.structs.replace(replicaset, annotations={}, replicas=0, generation=0)
    state = ENDING if replicaset.deleting_ms else ACTIVE
    size = replicaset.replicas
    settled = is_observed(replicaset) and replicaset.status.replicas <= size
    labels = _digest(encode(replicaset.labels))
    return Child(replicaset.name, state, _digest(encode(bare)), size=size, settled=settled, labels=labels)


def _digest(blob: bytes) -> str:
    return blake2b(blob, digest_size=6).hexdigest()
