"""The status of a ReplicaSet (or ReplicationController): what it should say, and the request that writes it.

Counts are those from before the turn's own creates and deletes; their effect shows in a later turn. Upstream:
`pkg/controller/replicaset/replica_set_utils.go`.
"""

import msgspec

from oarlock.controllers.deployment.model import DeploymentStatus
from oarlock.controllers.objects.availability import is_available
from oarlock.controllers.objects.model import Condition, ReplicaSet, ReplicaSetStatus, controller_of
from oarlock.controllers.objects.status import (
    Conditions,
    get_condition,
    remove_condition,
    set_condition,
    status_merge_patch,
)
from oarlock.controllers.objects.wire_parts import rfc3339
from oarlock.controllers.plan import Plan

Terminating = ReplicaSetStatus | DeploymentStatus
"""A status with a count of terminating pods."""
REPLICA_FAILURE = "ReplicaFailure"
FAILED_CREATE, FAILED_DELETE = "FailedCreate", "FailedDelete"
_NO_STATUS = ReplicaSetStatus()


def new_status(
    owner: ReplicaSet, plan: Plan, manage_error: str, now_ms: int, report_terminating: bool, attempted: bool = True
) -> ReplicaSetStatus:
    """The status after a turn. `manage_error` is the text of what went wrong while creating or deleting, or
    empty. `attempted`: whether any create or delete of the turn had an answer.

    Unlike upstream it counts no pod as available that a delete under way takes. It was chosen since it was not, and
    becomes so by time alone, so that the delete's precondition holds: whoever relied on the count would take another
    one. And it observes a generation only where no write of an earlier one may matter any more. So whoever scales a
    ReplicaSet, as a Deployment does, knows that its pods follow no former size.
    """
    replicas, fully_labeled, ready, available = plan.counts or _counts(owner, plan, now_ms)
    conditions = owner.status.conditions
    if manage_error or conditions:
        conditions = _conditions(owner, plan, manage_error, now_ms, attempted)
    return ReplicaSetStatus(
        replicas,
        fully_labeled,
        ready,
        available,
        plan.terminating if report_terminating else None,
        owner.generation if plan.observed else owner.status.observed_generation,
        conditions,
    )


def _counts(owner: ReplicaSet, plan: Plan, now_ms: int) -> tuple[int, int, int, int]:
    """Of the claimed pods: how many there are, have all labels of the template, are ready, are available."""
    fully_labeled = ready = available = 0
    template_labels = owner.template_labels.items()
    min_ready_seconds = owner.min_ready_seconds
    for pod in plan.claimed:
        if template_labels <= pod.labels.items():
            fully_labeled += 1
        if pod.ready:
            ready += 1
            if not min_ready_seconds or (pod.uid not in plan.leaving and is_available(pod, min_ready_seconds, now_ms)):
                available += 1
    return len(plan.claimed), fully_labeled, ready, available


def status(
    owner: ReplicaSet, plan: Plan, manage_error: str, now_ms: int, report_terminating: bool, attempted: bool = True
) -> ReplicaSetStatus | None:
    """The status to write, or None when the one there says all of it already or the plan does nothing at
    all.
    """
    if plan.invalid:
        return None
    new = new_status(owner, plan, manage_error, now_ms, report_terminating, attempted)
    return None if new == owner.status else new


def is_to_be_sized(owner: object) -> bool:
    """Whether it is a ReplicaSet that a controller has made without pods, and gives its size next, as a Deployment's
    turn does: its first status would only stand in the way of that write.
    """
    if not isinstance(owner, ReplicaSet) or owner.replicas or owner.generation > 1 or owner.status != _NO_STATUS:
        return False
    return controller_of(owner) is not None


def _conditions(owner: ReplicaSet, plan: Plan, manage_error: str, now_ms: int, attempted: bool) -> Conditions:
    """ReplicaFailure appears with the first failure, does not change with further ones, and goes with the last.

    It stays if a turn attempts nothing although pods are missing or too many: the rate limit grants nothing, or the
    cache has yet to pass our own writes. Upstream waits for its rate limit within the sync. It goes when the owner is
    being deleted, since nothing is attempted then.
    """
    conditions = owner.status.conditions
    present = get_condition(conditions, REPLICA_FAILURE)
    if not manage_error:
        over = attempted or not plan.diff or owner.deleting_ms
        return remove_condition(conditions, REPLICA_FAILURE) if present and over else conditions
    if present:
        return conditions
    reason = ""
    if plan.delete or plan.diff > 0:
        reason = FAILED_DELETE
    elif plan.diff < 0:
        reason = FAILED_CREATE
    return set_condition(conditions, Condition(REPLICA_FAILURE, "True", reason, manage_error, now_ms))


def status_patch(owner: ReplicaSet, new: ReplicaSetStatus, resource_version: str) -> bytes:
    """The request that writes it. Fields that are zero are removed, as a typed client leaves them out.

    The server replaces a list as a whole, so conditions that went are gone.
    """
    fields: dict[str, object] = {
        "replicas": new.replicas,
        "fullyLabeledReplicas": new.fully_labeled or None,
        "readyReplicas": new.ready or None,
        "availableReplicas": new.available or None,
        "observedGeneration": new.observed_generation or None,
    }
    if new.terminating is not None or owner.status.terminating is not None:
        fields["terminatingReplicas"] = new.terminating
    if new.conditions != owner.status.conditions:
        fields["conditions"] = [_condition_json(c) for c in new.conditions] or None
    return status_merge_patch(owner.uid, resource_version, fields)


def _condition_json(condition: Condition) -> dict[str, str]:
    fields = {"type": condition.type, "status": condition.status}
    if condition.last_transition_ms:
        fields["lastTransitionTime"] = rfc3339(condition.last_transition_ms)
    if condition.reason:
        fields["reason"] = condition.reason
    if condition.message:
        fields["message"] = condition.message
    return fields


# -- status.terminatingReplicas
#
# Not every API server keeps it, and a count that a server drops would be written again for ever. Its gate is on by
# default since 1.35 (upstream: DeploymentReplicaSetTerminatingReplicas), and servers of one cluster may differ during
# an upgrade. So the version does not decide: the answer to a status write shows whether the server kept the count.


class _Status(msgspec.Struct, gc=False, rename="camel"):
    terminating_replicas: int | None = None


class _Object(msgspec.Struct, gc=False):
    status: _Status | None = None


_OBJECT = msgspec.json.Decoder(_Object)


def is_kept(old: Terminating, new: Terminating, body: bytes) -> bool | None:
    """Whether the server kept the count in `new`, by its answer to the request that wrote it over `old`. None if the
    answer does not show it: the count was there before, or the answer has no status.
    """
    if new.terminating is None or new.terminating == old.terminating:
        return None
    try:
        found = _OBJECT.decode(body).status
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return None if found is None else found.terminating_replicas == new.terminating


def says_nothing_else(old: Terminating, new: Terminating) -> bool:
    """Whether `new` differs from `old` only by a count of terminating pods, which `old` lacks."""
    return old.terminating is None and new == msgspec.structs.replace(old, terminating=new.terminating)
