"""One turn over one key, on one screen: read, decide, act, say so.

The order is the protocol's: nothing is decided on a cache that has not passed our own answered writes; those without an
answer are counted both ways (``workers.turn.expectations``); claims come before creates and deletes, the status after
them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from oarlock.broker.expectations import BACK_OFF
from oarlock.broker.values import Change, Claim, Verdict
from oarlock.cluster.outcome import Outcome, of_change
from oarlock.controllers.entries import Controller
from oarlock.controllers.objects.codec import with_template
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.plan import Plan, Surroundings
from oarlock.controllers.registry import WATCHED
from oarlock.controllers.scheduling.model import Node
from oarlock.workers.turn import acting, adoption, blob_memo, expectations, looking, revisions
from oarlock.workers.turn.expectations import OpenWrites
from oarlock.workers.turn.steps import Send, Step, Turn, TurnContext, View, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

_NONE: frozenset[str] = frozenset()
_NO_BACK_OFFS: Mapping[str, str] = {}
_NO_HISTORY = revisions.Current("", (), {})


def turn(
    claim: Claim,
    view: View,
    controller: Controller,
    ctx: TurnContext,
    outcome: TurnOutcome,
) -> Turn:
    """Bring one owner a step closer to what it asks for. ``view``: how old what it reads may be.

    Raises TurnFailed for a turn that is to be retried, with what it settled; ClaimLost from a step ends it at once.
    """
    if claim.owner is None:
        return outcome.finish(Verdict.GONE)
    owner = with_template(WATCHED[controller.resource].decode(claim.owner.blob), claim.owner.apart)
    record = claim.expectations
    if record is not None and record.owner_uid not in ("", owner.uid):
        outcome.again_in(0)
        return outcome.finish(Verdict.GONE)  # of a predecessor of the same name: its names and UIDs mean nothing here
    pods = blob_memo.PODS.decode(claim.children)
    current = _NO_HISTORY
    if controller.history:
        found = claim.others.get(revisions.RESOURCE, ())
        current = yield from revisions.construct(owner, found, pods, controller, claim, outcome)
    writes = yield from expectations.resolve(owner, claim, pods, view.pods_rv, outcome)
    nodes_old = view.nodes_age_ms > ctx.view_age_max_ms
    snapshot = yield from _snapshot(owner, claim, pods, view.nodes, nodes_old, current, writes, controller, outcome)
    plan: Plan = controller.decide(snapshot, ctx.wall_ms())
    versions: looking.Versions = {}
    if plan.writes or plan.wants_related:
        snapshot, plan, versions = yield from looking.closer(
            claim, snapshot, plan, controller, ctx, view.pods_age_ms, outcome
        )
        if plan.adopt or plan.release:
            snapshot = yield from adoption.claim_pods(snapshot, plan, controller, outcome)
            plan = controller.decide(snapshot, ctx.wall_ms())
            adopted = snapshot.adopted or _NONE
            versions = {uid: rv for uid, rv in versions.items() if uid not in adopted}
    versions = {**versions, **writes.rvs} if writes.rvs else versions
    yield from _act(owner, plan, versions, current, writes, controller, outcome)
    if plan.again_ms is not None:
        outcome.due_in(plan.again_ms)
    yield from _write_status(claim, owner, plan, controller, ctx, outcome)
    if outcome.error:
        raise outcome.failure(outcome.error)
    return outcome.finish()


def _snapshot(
    owner: Any,
    claim: Claim,
    pods: tuple[Pod, ...],
    nodes: Mapping[str, Node],
    nodes_old: bool,
    current: revisions.Current,
    writes: OpenWrites,
    controller: Controller,
    outcome: TurnOutcome,
) -> Generator[Step, Any, Any]:
    """What is known, in the form the kind decides on; satisfied when all our answered writes have been read."""
    record, back_offs = claim.expectations, _NO_BACK_OFFS
    satisfied, blocked = not claim.min_rv and not current.undecided and writes.read, _NONE
    if record is not None:
        if not claim.min_rv:  # else a pod that is not there may still have to come
            present = {pod.uid for pod in pods if not pod.deleting_ms}
            satisfied = outcome.deletes_seen(record.deletes, present) and satisfied
        back_offs = record.back_offs
        if record.blocked and satisfied:  # the cache may not have come to the pod that bears the name
            blocked = yield from looking.still_blocked(owner.namespace, record.blocked, outcome)
    around = Surroundings(nodes, nodes_old, current.hash, current.old, back_offs)
    return controller.snapshot(owner, pods, around, satisfied=satisfied, unanswered=writes.unanswered, blocked=blocked)


def _act(
    owner: Any,
    plan: Plan,
    versions: looking.Versions,
    current: revisions.Current,
    writes: OpenWrites,
    controller: Controller,
    outcome: TurnOutcome,
) -> Generator[Step, Any, None]:
    """Creates, then deletes, whatever became of the creates; what is left of the history only if both went well."""
    outcome.events += plan.events
    renewed = {node for node, _ in plan.back_offs}
    outcome.changes += [Change.drop(f"{BACK_OFF} {node}") for node in plan.forget if node not in renewed]
    if plan.create:
        yield from acting.create_pods(owner, plan, controller, outcome)
    if plan.delete:
        yield from acting.delete_pods(owner, plan, versions, writes.rvs, outcome)
    if plan.error:
        outcome.failed(plan.error)
    if plan.prune and not outcome.error:
        yield from revisions.prune(plan.prune, current.versions, owner, outcome)


def _write_status(
    claim: Claim, owner: Any, plan: Plan, controller: Controller, ctx: TurnContext, outcome: TurnOutcome
) -> Turn:
    """Write the status if it says anything new, with the resourceVersion it was computed from, never on a fresh one.

    A turn after which all is well and another one is sure leaves it to that one, for a while.
    """
    assert claim.owner is not None
    if plan.invalid:
        return outcome.finish()  # nothing was done, and no time will change that
    now_ms = ctx.wall_ms()
    report, attempted = ctx.reports_terminating, outcome.attempted
    new = controller.status(owner, plan, outcome.standing, now_ms, report, attempted)
    if new is not None and report and ctx.kept.in_vain(owner.status, new):
        new = None
    late = new is not None and outcome.followed and not outcome.retry and ctx.late.put_off(owner.uid, now_ms)
    if not late:
        ctx.late.forget(owner.uid)
    if new is not None and not late and f"{controller.resource}=" not in claim.min_rv:
        body = controller.status_patch(owner, new, claim.owner.rv)
        write = Write("status", controller.resource, owner.namespace, owner.name, body)
        (answer,) = yield Send((write,))
        match of_change(answer):
            case Outcome.DONE:
                outcome.need(controller.resource, answer.resource_version)
                if ctx.reports_terminating:
                    ctx.kept.answered(owner.status, new, answer)
            case Outcome.GONE:
                pass  # the event of its end wakes the key
            case Outcome.CONFLICT | Outcome.NOT_SENT | Outcome.TOO_LATE:
                outcome.retry = True  # the owner has changed, or time is up: compute it again
            case Outcome.THROTTLED:
                outcome.throttled(answer)
                outcome.retry = True
            case _:
                raise outcome.failure(outcome.error or f"status of {owner.key}: {answer.message}")
    if controller.look_again_ms is not None:
        again_ms = controller.look_again_ms(owner, plan.claimed, new or owner.status, now_ms, ctx.wall_ms())
        if again_ms is not None:
            outcome.due_in(again_ms)
    return outcome.finish()
