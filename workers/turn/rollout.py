"""One turn over a Deployment, from top to bottom: read, decide, act, report.

What it writes are ReplicaSets, never pods. None of its creates is announced: the name of a ReplicaSet is a function of
the template, and it is created with size 0, so a create that lands late does no harm. Sizes are announced
(`workers.turn.size_writes`): the limits of a rollout cover the sum of all of them.
Upstream: `pkg/controller/deployment/deployment_controller.go` (syncDeployment), `sync.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Change, Verdict
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import Outcome, of_change, of_create, of_delete
from oarlock.controllers.deployment import bodies, events
from oarlock.controllers.deployment.model import Deployment, DeploymentStatus
from oarlock.controllers.deployment.plan import Creation, Plan, Rollback, Snapshot, StatusWrite, Update
from oarlock.controllers.entries import RolloutController
from oarlock.controllers.objects import wire
from oarlock.controllers.objects.codec import decode_pod, with_template
from oarlock.controllers.objects.model import ReplicaSet, controller_of
from oarlock.controllers.registry import WATCHED
from oarlock.controllers.routing import owner_entry
from oarlock.workers.turn import adoption, blob_memo, size_writes
from oarlock.workers.turn.looking import live_owner
from oarlock.workers.turn.size_writes import RESOURCE, Known
from oarlock.workers.turn.status import PUT_OFF_MS, KeptCount, LateStatus
from oarlock.workers.turn.steps import Grant, Listed, ListLive, Look, Read, Reserve, Send, Steps, Turn, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

KIND = "ReplicaSet"
WAIT_MS = 5_000
"""How long a turn that waits for pods to go leaves the watching to their events."""


class RolloutContext(NamedTuple):
    """What the turns of one kind share in a process. ``reports_terminating``: the status has terminatingReplicas."""

    reports_terminating: bool
    late: LateStatus
    kept: KeptCount


class _Seen(NamedTuple):
    """What a decision is made on, and the resourceVersion of each ReplicaSet in it, by UID."""

    snapshot: Snapshot
    versions: dict[str, str]


class _Done(NamedTuple):
    """What came of a creation. ``error``: why there is none; a turn that is only late has none either."""

    created: bool = False
    error: str = ""


def rollout(
    claim: Claim, replicasets_rv: str, controller: RolloutController, ctx: RolloutContext, outcome: TurnOutcome
) -> Turn:
    """Bring one Deployment a step closer to its spec.

    ``replicasets_rv``: what the cached ReplicaSets equal. Time is Redis's (``claim.now_ms``), so that deadlines do not
    depend on which worker looks. Raises TurnFailed for a turn that is to be retried; ClaimLost ends it at once.
    """
    if claim.owner is None:
        return outcome.finish(Verdict.GONE)
    watched = WATCHED[controller.resource]
    deployment: Deployment = with_template(watched.decode(claim.owner.blob), claim.owner.apart)
    if claim.expectations is not None and claim.expectations.owner_uid not in ("", deployment.uid):
        outcome.again_in(0)  # those of a predecessor of the same name
        return outcome.finish(Verdict.GONE)
    if claim.min_rv:
        return outcome.finish()  # the cache lacks writes of ours; when it has passed them, the key is queued
    replicasets: tuple[ReplicaSet, ...] = blob_memo.owners(RESOURCE).decode(claim.children)
    cached = {each.name: (child.rv, each) for each, child in zip(replicasets, claim.children, strict=True)}
    known = yield from size_writes.resolve(deployment.namespace, claim.expectations, cached, replicasets_rv, outcome)
    if not known.read:
        return outcome.finish()
    versions = {child.uid: child.rv for child in claim.children}
    seen = _Seen(Snapshot(deployment, replicasets, known.writes), versions)
    plan, seen = yield from _decide(seen, claim, controller, outcome)
    if plan.waiting_for and seen.snapshot.pods is not None:
        outcome.due_in(WAIT_MS)
    done = yield from _act(deployment, plan, seen.versions, known, claim, controller, outcome)
    yield from _write_status(deployment, plan, done, known, claim, controller, ctx, outcome)
    if outcome.error:
        raise outcome.failure(outcome.error)
    return outcome.finish()


def _decide(
    seen: _Seen, claim: Claim, controller: RolloutController, outcome: TurnOutcome
) -> Steps[tuple[Plan, _Seen]]:
    """Decide; while the plan asks for more, fetch that and decide again.

    After a loss of announced writes it is decided on a live list. Adoptions and releases come last, as for pods.
    """
    lost = claim.unsettled and not (claim.expectations and claim.expectations.owner_uid)
    while True:
        plan: Plan = controller.decide(seen.snapshot, claim.now_ms)
        if lost and (plan.adopt or plan.create or plan.updates or plan.prune):
            seen, lost = (yield from _on_live_list(seen, outcome)), False
            outcome.changes.append(Change.settled())
        elif plan.wants_pods and seen.snapshot.pods is None:
            seen = seen._replace(snapshot=(yield from _with_pods(seen.snapshot)))
        elif (plan.adopt or plan.release) and seen.snapshot.adopted is None:
            seen = yield from _claim_replicasets(seen, plan, controller, outcome)
        else:
            return plan, seen


def _on_live_list(seen: _Seen, outcome: TurnOutcome) -> Steps[_Seen]:
    deployment = seen.snapshot.deployment
    listed: Listed = yield ListLive(RESOURCE, deployment.namespace)
    outcome.cache_must_pass(RESOURCE, listed.rv)
    found = []
    for rv, each in map(wire.replicaset_from_json, listed.items):
        ref = controller_of(each)
        if ref is None or ref.uid == deployment.uid:
            found.append((rv, each))
    snapshot = msgspec.structs.replace(seen.snapshot, replicasets=tuple(each for _, each in found), pods=None)
    return _Seen(snapshot, {each.uid: rv for rv, each in found})


def _with_pods(snapshot: Snapshot) -> Steps[Snapshot]:
    """With the pods two levels down: those of every ReplicaSet that the Deployment has, or has just adopted."""
    uid, adopted = snapshot.deployment.uid, snapshot.adopted or ()
    owned = [
        each.uid
        for each in snapshot.replicasets
        if each.uid in adopted or ((ref := controller_of(each)) is not None and ref.uid == uid)
    ]
    entries = tuple(map(owner_entry, owned))
    found: list[Cached] = (yield Look("pods", entries=entries)) if entries else []
    return msgspec.structs.replace(snapshot, pods=tuple(decode_pod(each.blob) for each in found))


def _claim_replicasets(seen: _Seen, plan: Plan, controller: RolloutController, outcome: TurnOutcome) -> Steps[_Seen]:
    deployment = seen.snapshot.deployment
    adopted = yield from adoption.carry_out(deployment, plan.adopt, plan.release, RESOURCE, KIND, controller, outcome)
    snapshot = msgspec.structs.replace(seen.snapshot, adopted=frozenset(adopted))
    return _Seen(snapshot, seen.versions | adopted)


def _act(
    deployment: Deployment,
    plan: Plan,
    versions: Mapping[str, str],
    known: Known,
    claim: Claim,
    controller: RolloutController,
    outcome: TurnOutcome,
) -> Steps[_Done]:
    """One kind of progress; then old ReplicaSets go, but only if all went well."""
    outcome.events += plan.events
    done = _Done()
    if plan.rollback is not None:
        yield from _roll_back(deployment, plan.rollback, claim, controller, outcome)
    elif plan.create is not None:
        done = yield from _create(deployment, plan.create, known, controller, outcome)
    elif plan.updates:
        yield from size_writes.carry_out(deployment.uid, plan.updates, versions, known, outcome)
    if plan.error:
        outcome.failed(plan.error)
    if plan.prune and not outcome.error and not outcome.retry:
        yield from _prune(plan.prune, versions, outcome)
    return done


def _create(
    deployment: Deployment, creation: Creation, known: Known, controller: RolloutController, outcome: TurnOutcome
) -> Steps[_Done]:
    """Create the ReplicaSet without pods, then give it its size under the version it got."""
    try:
        body = bodies.creation_body(deployment, creation)
    except ValueError as error:
        outcome.failed(str(error))
        return _Done(error=str(error))
    write = Write("create", RESOURCE, deployment.namespace, creation.name, body)
    answer: Answer
    (answer,) = yield Send((write,))
    result = of_create(answer)
    outcome.heed_throttling(answer)
    if result is Outcome.EXISTS:
        return (yield from _sort_taken(deployment, write, controller, outcome))
    if result in (Outcome.NAMESPACE_TERMINATING, Outcome.TOO_LATE):
        outcome.retry = result is Outcome.TOO_LATE  # else nothing is wrong: the Deployment goes too
        return _Done()
    if result is not Outcome.DONE:
        outcome.failed(answer.message)
        outcome.events.append(events.create_failed(creation.name, answer.message))
        return _Done(error=answer.message)
    outcome.cache_must_pass(RESOURCE, answer.resource_version)
    outcome.followed = True
    try:
        rv, replicaset = wire.replicaset_from_json(answer.body)
    except wire.WireError:
        return _Done(created=True)  # the next turn, which reads it from the cache, gives it its size
    if replicaset.template_digest != deployment.template_digest:
        return _changed_on_creation(replicaset, outcome)
    if creation.replicas:
        event = events.scaled(creation.name, 0, creation.replicas)
        update = Update(replicaset, creation.replicas, 0, creation.replicas, event=event)
        yield from size_writes.carry_out(deployment.uid, (update,), {replicaset.uid: rv}, known, outcome)
    return _Done(created=True)


def _changed_on_creation(replicaset: ReplicaSet, outcome: TurnOutcome) -> _Done:
    """An admission plugin gave it another template. It gets no pods and no other is made, which would fare no better:
    upstream counts that as a collision, and makes one ReplicaSet after the other.
    """
    error = f"admission changed the template of {KIND} {replicaset.name}: delete it once that is mended"
    outcome.failed(error)
    outcome.events.append(events.create_failed(replicaset.name, error))
    return _Done(error=error)


def _sort_taken(
    deployment: Deployment, write: Write, controller: RolloutController, outcome: TurnOutcome
) -> Steps[_Done]:
    """AlreadyExists: ours, with this template, is the one that was wanted. One that was never changed since we made it,
    and has another template all the same, ends the turn. Anything else is a collision, which is counted, so that the
    next turn uses another name.
    """
    what = f"{KIND} {write.namespace}/{write.name}"
    look: Answer
    (look,) = yield Read(RESOURCE, write.namespace, (write.name,))
    if not look.ok:
        raise outcome.failure(f"{what} exists already, reading it: {look.message}")
    try:
        rv, found = wire.replicaset_from_json(look.body)
    except wire.WireError as error:
        raise outcome.failure(f"{what} exists already: {error}") from None
    ref = controller_of(found)
    if ref is not None and ref.uid == deployment.uid:
        if found.template_digest == deployment.template_digest:
            outcome.cache_must_pass(RESOURCE, rv)
            return _Done()
        if found.generation == 1 and not found.replicas:
            return _changed_on_creation(found, outcome)
    live = yield from live_owner(deployment, controller)
    if live.error:
        raise outcome.failure(f"{what} is another's or of another template, reading its Deployment: {live.error}")
    count = (live.owner.status.collision_count or 0) + 1
    patch = bodies.collision_patch(deployment.uid, count, live.rv)
    answer: Answer
    (answer,) = yield Send((Write("status", controller.resource, write.namespace, deployment.name, patch),))
    if of_change(answer) is Outcome.DONE:
        outcome.cache_must_pass(controller.resource, answer.resource_version)
        raise outcome.failure(f"{what} is another's or of another template: the collision count is {count} now")
    outcome.heed_throttling(answer)
    raise outcome.failure(f"{what} is another's or of another template, counting the collision: {answer.message}")


def _prune(prune: Sequence[ReplicaSet], versions: Mapping[str, str], outcome: TurnOutcome) -> Steps[None]:
    """Delete old ReplicaSets, each only if it is still the empty one that was seen."""
    grant: Grant = yield Reserve(len(prune))
    if grant.granted < len(prune):
        outcome.again_in(grant.wait_ms)
    writes = tuple(
        Write("delete", RESOURCE, each.namespace, each.name, uid=each.uid, rv=versions[each.uid])
        for each in prune[: grant.granted]
    )
    answers: list[Answer] = (yield Send(writes, prepaid=True)) if writes else []
    for write, answer in zip(writes, answers, strict=True):
        match of_delete(answer):
            case Outcome.DONE:
                outcome.cache_must_pass(RESOURCE, answer.resource_version)
            case Outcome.GONE:
                pass
            case Outcome.CONFLICT | Outcome.TOO_LATE:
                outcome.retry = True
            case _:
                outcome.heed_throttling(answer)
                outcome.failed(f"clean up {KIND} {write.namespace}/{write.name}: {answer.message}")


def _roll_back(
    deployment: Deployment, rollback: Rollback, claim: Claim, controller: RolloutController, outcome: TurnOutcome
) -> Steps[None]:
    """End the request for a rollback. The template comes from the API: the cache has only its digest."""
    assert claim.owner is not None
    template = b""
    if rollback.target is not None:
        look: Answer
        (look,) = yield Read(RESOURCE, deployment.namespace, (rollback.target.name,))
        if not look.ok or look.uid != rollback.target.uid:
            raise outcome.failure(
                f"rollback of {deployment.key}: {look.message or 'its ReplicaSet is another one now'}"
            )
        template = wire.replicaset_template(look.body)
    try:
        patch = bodies.rollback_patch(deployment, rollback, template, claim.owner.rv)
    except ValueError as error:
        raise outcome.failure(f"rollback of {deployment.key}: {error}") from None
    answer: Answer
    (answer,) = yield Send((Write("patch", controller.resource, deployment.namespace, deployment.name, patch),))
    match of_change(answer):
        case Outcome.DONE:
            outcome.cache_must_pass(controller.resource, answer.resource_version)
            outcome.events.append(rollback.event)
        case Outcome.GONE:
            pass
        case Outcome.CONFLICT | Outcome.NOT_SENT | Outcome.TOO_LATE | Outcome.THROTTLED:
            outcome.heed_throttling(answer)
            outcome.retry = True
        case _:
            outcome.failed(f"rollback of {deployment.key}: {answer.message}")


def _write_status(
    deployment: Deployment,
    plan: Plan,
    done: _Done,
    known: Known,
    claim: Claim,
    controller: RolloutController,
    ctx: RolloutContext,
    outcome: TurnOutcome,
) -> Steps[None]:
    """Write the status if it says anything new. One that the next turn is sure to change may wait for a second, but
    never the news of a condition: the next turn does not know of it. Nor that there are more old pods, as after a
    change of the template: without it there would be no progress to see when they go.

    While a ReplicaSet has yet to observe its size, its next status brings a turn. If that does not come, as its pods
    are refused, time does.
    """
    now_ms, report = claim.now_ms, ctx.reports_terminating
    told = controller.status(
        deployment,
        plan,
        created=done.created,
        create_error=done.error,
        error=outcome.standing,
        now_ms=now_ms,
        report_terminating=report,
    )
    if told.again_ms is not None:
        outcome.due_in(told.again_ms)
    write: StatusWrite | None = told.write
    if write is not None and report and not write.revision and ctx.kept.in_vain(deployment.status, write.status):
        write = None
    only_counts = (
        write is not None
        and _old_pods(write.status) <= _old_pods(deployment.status)
        and _verdicts(write.status) == _verdicts(deployment.status)
    )
    is_followed = outcome.followed or bool(known.writes)
    if only_counts and is_followed and not outcome.retry and ctx.late.put_off(deployment.uid, now_ms):
        if not outcome.followed:
            outcome.due_in(PUT_OFF_MS)
        return
    ctx.late.forget(deployment.uid)
    if write is not None:
        yield from _send_status(deployment, write, claim, controller, ctx, outcome)


def _old_pods(status: DeploymentStatus) -> int:
    return status.replicas - status.updated


def _verdicts(status: DeploymentStatus) -> list[tuple[str, ...]]:
    """With the message: a rollout without pods is complete at once, and only that tells of which ReplicaSet."""
    return [(each.type, each.status, each.reason, each.message) for each in status.conditions]


def _send_status(
    deployment: Deployment,
    status: StatusWrite,
    claim: Claim,
    controller: RolloutController,
    ctx: RolloutContext,
    outcome: TurnOutcome,
) -> Steps[None]:
    assert claim.owner is not None
    body = bodies.status_patch(deployment, status, claim.owner.rv)
    answer: Answer
    (answer,) = yield Send((Write("status", controller.resource, deployment.namespace, deployment.name, body),))
    match of_change(answer):
        case Outcome.DONE:
            outcome.cache_must_pass(controller.resource, answer.resource_version)
            if ctx.reports_terminating:
                ctx.kept.answered(deployment.status, status.status, answer)
        case Outcome.GONE:
            pass  # the event of its end wakes the key
        case Outcome.CONFLICT | Outcome.NOT_SENT | Outcome.TOO_LATE | Outcome.THROTTLED:
            outcome.heed_throttling(answer)
            outcome.retry = True  # it has changed, or time is up: compute it again
        case _:
            raise outcome.failure(outcome.error or f"status of {deployment.key}: {answer.message}")
