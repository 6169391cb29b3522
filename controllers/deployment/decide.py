"""The decision of a Deployment: one kind of progress at a time, in upstream's order.

Upstream: `pkg/controller/deployment/deployment_controller.go` (syncDeployment), `sync.go`, `rolling.go`, `recreate.go`.
Unlike there, nothing is decided on what a turn has just written: an update of the new ReplicaSet, or its creation, ends
the plan, and the event of it brings the next one.
"""

from msgspec.structs import replace

from oarlock.controllers.deployment.annotations import REVISION
from oarlock.controllers.deployment.events import SELECTING_ALL
from oarlock.controllers.deployment.find import creation, new_and_old, refresh
from oarlock.controllers.deployment.model import RECREATE, ROLLING_UPDATE, Deployment
from oarlock.controllers.deployment.plan import Plan, Rollout, Snapshot
from oarlock.controllers.deployment.progress import is_complete
from oarlock.controllers.deployment.revisions import next_revision, rollback, rollback_requested, surplus
from oarlock.controllers.deployment.sizing import recreate, rolling, scaling
from oarlock.controllers.deployment.sizing.sizes import Step
from oarlock.controllers.ownership.claim import claim


def decide(snapshot: Snapshot, now_ms: int) -> Plan:
    """What one turn does about the Deployment's ReplicaSets.

    Limits that cannot be read are the plan's error: nothing is created or changed, but the status is made. `now_ms`:
    as of every kind; no step of a rollout depends on the time, only its status does.
    """
    deployment = snapshot.deployment
    selector = deployment.selector
    if selector is None or selector.empty:
        return Plan(invalid="the selector is empty", events=(SELECTING_ALL,))
    if selector.error:
        return Plan(invalid=selector.error)
    claims = claim(deployment, snapshot.replicasets).carried_out(snapshot.adopted)
    if claims.adopt or claims.release:
        return Plan(adopt=tuple(claims.adopt), release=tuple(claims.release))
    new, old = new_and_old(deployment, claims.claimed)
    if deployment.deleting_ms:
        return Plan(Rollout(new, old))
    requested = rollback_requested(deployment)
    if deployment.paused or (requested is None and scaling.is_scaling(deployment, Rollout(new, old))):
        next_step = _scaled
    else:
        next_step = _rolled if requested is None else _rolled_back
    plan = Plan(Rollout(new, old, evaluated=next_step is _rolled))
    try:
        refreshed = _refreshed(snapshot, plan)
        return refreshed if refreshed.updates else next_step(snapshot, refreshed)
    except ValueError as error:
        return replace(plan, error=str(error))


def _refreshed(snapshot: Snapshot, plan: Plan) -> Plan:
    """The new ReplicaSet is brought up to date; once it is, the Deployment gets its revision."""
    new = plan.rollout.new
    if new is None:
        return plan
    update = refresh(snapshot.deployment, new, next_revision(plan.rollout.old), snapshot.size_writes)
    if update is not None:
        return replace(plan, updates=(update,))
    return replace(plan, revision=new.annotations.get(REVISION, ""))


def _scaled(snapshot: Snapshot, plan: Plan) -> Plan:
    """While it is paused, and after a change of its size: nothing is rolled out."""
    deployment = snapshot.deployment
    step = scaling.scale(deployment, plan.rollout, snapshot.size_writes, snapshot.pods)
    plan = _with_step(plan, step)
    if deployment.paused and rollback_requested(deployment) is None:
        return _tidied(deployment, plan)
    return plan


def _rolled_back(snapshot: Snapshot, plan: Plan) -> Plan:
    """The present template gets a revision first, so that there is a way back to it.

    Under Recreate its ReplicaSet gets no pods yet, unlike upstream, where they would run beside the old ones.
    """
    deployment, rollout = snapshot.deployment, plan.rollout
    if rollout.new is None:
        is_alone = deployment.strategy == RECREATE
        size = 0 if is_alone else rolling.size_of_new(deployment, rollout, snapshot.size_writes)
        return _with_creation(deployment, plan, size)
    return replace(plan, rollback=rollback(deployment, rollout, rollback_requested(deployment) or 0))


def _rolled(snapshot: Snapshot, plan: Plan) -> Plan:
    """By the strategy. What was said to be complete, and still is, is tidied up."""
    deployment, rollout, size_writes = snapshot.deployment, plan.rollout, snapshot.size_writes
    if deployment.strategy == RECREATE:
        step = recreate.step(deployment, rollout, size_writes, snapshot.pods)
        if step.may_create and rollout.new is None:
            return _with_creation(deployment, plan, deployment.replicas)
    elif deployment.strategy == ROLLING_UPDATE:
        if rollout.new is None:
            return _with_creation(deployment, plan, rolling.size_of_new(deployment, rollout, size_writes))
        step = rolling.roll(deployment, rollout, size_writes)
    else:
        raise ValueError(f"unexpected deployment strategy type: {deployment.strategy}")
    if step == Step() and is_complete(deployment, deployment.status):
        return _tidied(deployment, plan)
    return _with_step(plan, step)


def _with_step(plan: Plan, step: Step) -> Plan:
    return replace(plan, updates=step.updates, wants_pods=step.wants_pods, waiting_for=step.waiting_for)


def _with_creation(deployment: Deployment, plan: Plan, replicas: int) -> Plan:
    revision = next_revision(plan.rollout.old)
    return replace(plan, create=creation(deployment, revision, replicas), revision=str(revision))


def _tidied(deployment: Deployment, plan: Plan) -> Plan:
    """Without the surplus of old ReplicaSets, but for those that get pods now."""
    written = {update.replicaset.uid for update in plan.updates}
    prune = [each for each in surplus(deployment, plan.rollout.old) if each.uid not in written]
    return replace(plan, prune=tuple(prune))
