"""The status of a Deployment: what it should say, and when it is to be written.

Counts are those from before the turn's own writes; their effect shows in a later turn. Upstream:
`pkg/controller/deployment/sync.go` (calculateStatus, syncDeploymentStatus), `progress.go` (syncRolloutStatus).
"""

from collections.abc import Iterable

from msgspec.structs import replace

from oarlock.controllers.deployment import events, progress
from oarlock.controllers.deployment.annotations import REVISION
from oarlock.controllers.deployment.model import Deployment, DeploymentCondition, DeploymentStatus
from oarlock.controllers.deployment.plan import Plan, Rollout, StatusPlan, StatusWrite
from oarlock.controllers.deployment.progress import (
    CREATE_ERROR,
    CREATED,
    FOUND,
    PROGRESSING,
    Conditions,
    progressing,
    set_condition,
)
from oarlock.controllers.deployment.sizing.limits import max_unavailable
from oarlock.controllers.objects.model import ReplicaSet
from oarlock.controllers.objects.status import get_condition, remove_condition
from oarlock.controllers.replicaset.status import REPLICA_FAILURE

AVAILABLE = "Available"


def status(
    deployment: Deployment,
    plan: Plan,
    *,
    created: bool,
    create_error: str,
    error: str,
    now_ms: int,
    report_terminating: bool = True,
) -> StatusPlan:
    """What a turn that carried out `plan` has to say. `created`: the ReplicaSet of `plan.create` was created by it.
    `create_error`: why that failed, `error`: why anything else was not done; each empty if all went well.
    `report_terminating`: whether the cluster keeps the count of terminating pods.

    After a failure the generation does not count as observed. After a rollback nothing is written: the Deployment is
    another one by then, and its event brings the next turn.
    """
    if plan.rollback is not None:
        return StatusPlan(None)
    observed = deployment.status.observed_generation if error or create_error else deployment.generation
    if plan.invalid:
        return StatusPlan(_write(deployment, replace(deployment.status, observed_generation=observed), ""))
    rollout = plan.rollout
    before = _with_news(deployment, plan, created, create_error, now_ms)
    new = _counted(before, rollout, observed, report_terminating)
    new = replace(new, conditions=set_condition(before.conditions, _available(deployment, new.available, now_ms)))
    again_ms = None
    if rollout.evaluated and not create_error:
        conditions = progress.judge(deployment, before, new, _name_of_new(plan, created), now_ms)
        new = replace(new, conditions=_with_failures(conditions, rollout))
        again_ms = progress.look_again_ms(deployment, new, now_ms)
    revision = plan.revision if plan.create is None or created else ""
    return StatusPlan(_write(deployment, new, revision), again_ms)


def _write(deployment: Deployment, new: DeploymentStatus, revision: str) -> StatusWrite | None:
    if revision == deployment.annotations.get(REVISION):
        revision = ""
    return StatusWrite(new, revision) if revision or new != deployment.status else None


def _with_news(deployment: Deployment, plan: Plan, created: bool, create_error: str, now_ms: int) -> DeploymentStatus:
    """The status so far with what this turn did, before anything is judged by it: paused or resumed, the new ReplicaSet
    created, not created, or found.
    """
    status = deployment.status
    if deployment.progress_deadline_seconds is None or deployment.deleting_ms:
        return status
    conditions = progress.paused_or_resumed(deployment, status.conditions, now_ms)
    name = _name_of_new(plan, created)
    if plan.create is not None and create_error:
        text = events.create_error(plan.create.name, create_error)
        conditions = set_condition(conditions, progressing("False", CREATE_ERROR, text, now_ms))
    elif created:
        text = f'Created new replica set "{name}"'
        conditions = set_condition(conditions, progressing("True", CREATED, text, now_ms))
    elif name and get_condition(conditions, PROGRESSING) is None:
        text = f'Found new replica set "{name}"'
        conditions = set_condition(conditions, progressing("True", FOUND, text, now_ms))
    return replace(status, conditions=conditions)


def _name_of_new(plan: Plan, created: bool) -> str:
    """The ReplicaSet with the Deployment's template; empty without one."""
    if plan.create is not None and created:
        return plan.create.name
    return plan.rollout.new.name if plan.rollout.new else ""


def _counted(before: DeploymentStatus, rollout: Rollout, observed: int, report_terminating: bool) -> DeploymentStatus:
    """What the ReplicaSets report, added up. Pods that are missing from a ReplicaSet count as unavailable."""
    replicasets = rollout.old if rollout.new is None else (*rollout.old, rollout.new)
    statuses = [each.status for each in replicasets]
    available = sum([each.available for each in statuses])
    return DeploymentStatus(
        replicas=sum([each.replicas for each in statuses]),
        updated=rollout.new.status.replicas if rollout.new else 0,
        ready=sum([each.ready for each in statuses]),
        available=available,
        unavailable=max(0, sum([each.replicas for each in replicasets]) - available),
        terminating=terminating(replicasets) if report_terminating else None,
        observed_generation=observed,
        collision_count=before.collision_count,
    )


def terminating(replicasets: Iterable[ReplicaSet]) -> int | None:
    """Their pods that are being deleted; None if one of them has a status that does not say how many it has."""
    total = 0
    for status in [each.status for each in replicasets]:
        if status.terminating is None and status.observed_generation:
            return None
        total += status.terminating or 0
    return total


def _available(deployment: Deployment, available: int, now_ms: int) -> DeploymentCondition:
    try:
        least = deployment.replicas - max_unavailable(deployment)
    except ValueError:  # the plan has the error; no pod may be missing then
        least = deployment.replicas
    status, reason, has = ("True", "MinimumReplicasAvailable", "has")
    if available < least:
        status, reason, has = ("False", "MinimumReplicasUnavailable", "does not have")
    return DeploymentCondition(AVAILABLE, status, reason, f"Deployment {has} minimum availability.", now_ms, now_ms)


def _with_failures(conditions: Conditions, rollout: Rollout) -> Conditions:
    """With the failure that a ReplicaSet reports, the new one's before any other's; without any, if none does."""
    for replicaset in (rollout.new, *rollout.old):
        failure = replicaset and get_condition(replicaset.status.conditions, REPLICA_FAILURE)
        if failure:
            at_ms = failure.last_transition_ms
            own = DeploymentCondition(REPLICA_FAILURE, failure.status, failure.reason, failure.message, at_ms, at_ms)
            return set_condition(conditions, own)
    return remove_condition(conditions, REPLICA_FAILURE)
