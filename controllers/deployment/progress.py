"""Whether a rollout progresses, is complete, or has taken too long: the condition Progressing of a Deployment.

Upstream: `pkg/controller/deployment/progress.go`, `sync.go` (checkPausedConditions), `util/deployment_util.go`.
"""

import msgspec

from oarlock.controllers.deployment.model import Deployment, DeploymentCondition, DeploymentStatus
from oarlock.controllers.objects.status import get_condition, remove_condition

Conditions = tuple[DeploymentCondition, ...]

PROGRESSING = "Progressing"
CREATED, CREATE_ERROR, FOUND = "NewReplicaSetCreated", "ReplicaSetCreateError", "FoundNewReplicaSet"
UPDATED, COMPLETE, TIMED_OUT = "ReplicaSetUpdated", "NewReplicaSetAvailable", "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"
_S_MS = 1000


def set_condition(conditions: Conditions, new: DeploymentCondition) -> Conditions:
    """With `new` at the end in place of one of its type; unchanged if that has the same status and reason.

    With the same status and another reason the time of the last transition stays.
    """
    old = get_condition(conditions, new.type)
    if old is not None and old.status == new.status:
        if old.reason == new.reason:
            return conditions
        new = msgspec.structs.replace(new, last_transition_ms=old.last_transition_ms)
    return (*remove_condition(conditions, new.type), new)


def progressing(status: str, reason: str, message: str, now_ms: int) -> DeploymentCondition:
    """The condition Progressing as it becomes now."""
    return DeploymentCondition(PROGRESSING, status, reason, message, now_ms, now_ms)


def paused_or_resumed(deployment: Deployment, conditions: Conditions, now_ms: int) -> Conditions:
    """The conditions say whether the Deployment is paused. To resume starts the deadline anew.

    That the deadline has passed is said on while the Deployment is paused.
    """
    present = get_condition(conditions, PROGRESSING)
    reason = present.reason if present else ""
    if deployment.progress_deadline_seconds is None or reason == TIMED_OUT or deployment.paused == (reason == PAUSED):
        return conditions
    if deployment.paused:
        return set_condition(conditions, progressing("Unknown", PAUSED, "Deployment is paused", now_ms))
    return set_condition(conditions, progressing("Unknown", RESUMED, "Deployment is resumed", now_ms))


def judge(
    deployment: Deployment, old: DeploymentStatus, new: DeploymentStatus, replicaset: str, now_ms: int
) -> Conditions:
    """The conditions of `new` with Progressing judged by what changed since `old`. Without a deadline there is none.

    `replicaset`: name of the new one, or empty. A rollout that was complete stays so until there are pods of another
    template. Unlike upstream that is enough: a status that was never written, since its worker died, would otherwise
    leave the next rollout without a deadline.
    """
    conditions = new.conditions
    if deployment.progress_deadline_seconds is None:
        return remove_condition(conditions, PROGRESSING)
    present = get_condition(old.conditions, PROGRESSING)
    if new.replicas == new.updated and present is not None and present.reason == COMPLETE:
        return conditions
    what = f'ReplicaSet "{replicaset}"' if replicaset else f'Deployment "{deployment.name}"'
    if is_complete(deployment, new):
        done = progressing("True", COMPLETE, f"{what} has successfully progressed.", now_ms)
        return set_condition(conditions, done)
    has_begun = present is not None and present.reason == COMPLETE and new.updated > 0
    if has_begun or has_progressed(old, new):
        moving = progressing("True", UPDATED, f"{what} is progressing.", now_ms)
        if present is not None and present.status == moving.status:
            moving = msgspec.structs.replace(moving, last_transition_ms=present.last_transition_ms)
        # Put in anew: the time of the last update moves even where status and reason stay.
        return (*remove_condition(conditions, PROGRESSING), moving)
    if has_timed_out(deployment, new, now_ms):
        late = progressing("False", TIMED_OUT, f"{what} has timed out progressing.", now_ms)
        return set_condition(conditions, late)
    return conditions


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all pods are of the present template and available, there are no others, and this generation is meant."""
    counts = {status.updated, status.replicas, status.available}
    return counts == {deployment.replicas} and status.observed_generation >= deployment.generation


def has_progressed(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    """Whether there are more updated, ready or available pods, or fewer old ones."""
    return (
        new.updated > old.updated
        or new.replicas - new.updated < old.replicas - old.updated
        or new.ready > old.ready
        or new.available > old.available
    )


def has_timed_out(deployment: Deployment, status: DeploymentStatus, now_ms: int) -> bool:
    """Whether the rollout took longer than the deadline; a complete one cannot any more, a late one stays late."""
    present = get_condition(status.conditions, PROGRESSING)
    if deployment.progress_deadline_seconds is None or present is None or present.reason == COMPLETE:
        return False
    return present.reason == TIMED_OUT or _deadline_ms(deployment, present) < now_ms


def look_again_ms(deployment: Deployment, status: DeploymentStatus, now_ms: int) -> int | None:
    """Delay until the rollout may have timed out, and a second more as upstream has it; None if no time changes that.

    Upstream counts a passed deadline of a rollout that was complete before, too, and looks again at once, for ever.
    """
    present = get_condition(status.conditions, PROGRESSING)
    if deployment.progress_deadline_seconds is None or present is None or is_complete(deployment, status):
        return None
    if present.reason in (TIMED_OUT, COMPLETE):
        return None
    left_ms = _deadline_ms(deployment, present) - now_ms
    return left_ms + _S_MS if left_ms >= _S_MS else max(left_ms, 0) + 1


def _deadline_ms(deployment: Deployment, present: DeploymentCondition) -> int:
    return present.last_update_ms + (deployment.progress_deadline_seconds or 0) * _S_MS
