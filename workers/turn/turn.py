"""One turn over one key, from top to bottom: read, decide, act, report.

The order is the protocol's. Nothing is decided on a cache that has not passed our own answered writes. Writes without
an answer count both as done and as not done (``workers.turn.expectations``). Adoptions and releases come before creates
and deletes, and the status comes last, but before the creates if it was put off (``StatusWriter.write_overdue``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from oarlock.broker.expectations import BACK_OFF
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import Change, Verdict
from oarlock.controllers.entries import PodController
from oarlock.controllers.objects.codec import template_name, with_template
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.plan import Plan, Surroundings
from oarlock.controllers.pods.slow_start import SlowStart
from oarlock.controllers.registry import WATCHED
from oarlock.controllers.scheduling.model import Node
from oarlock.workers.turn import acting, adoption, blob_memo, expectations, looking, revisions
from oarlock.workers.turn.expectations import OpenWrites
from oarlock.workers.turn.looking import Versions
from oarlock.workers.turn.status import StatusWriter
from oarlock.workers.turn.steps import LookApart, Steps, Turn
from oarlock.workers.turn.turn_outcome import TurnOutcome

GO_ON_MS = 1_500
"""A turn decides on more pods only if it can create them, at its pace so far, within this time of its first create."""
PLANS_MAX = 2
"""So many a turn carries out at most: after a kill, a claim reads the names of all of them in one step of Redis."""
_NO_BACK_OFFS: Mapping[str, str] = {}


class View(NamedTuple):
    """The cache at the claim. ``pods_rv``: what the pods equal. ``.._age_ms``: since it was last confirmed. ``nodes``:
    all nodes by name, for kinds that need them. ``waited_ms``: how long the key was queued.
    """

    pods_rv: str = ""
    pods_age_ms: int = 0
    nodes: Mapping[str, Node] = {}
    nodes_age_ms: int = 0
    waited_ms: int = 0


class TurnContext(NamedTuple):
    """What the turns of one kind share in a process. ``view_age_max_ms``: no deletes on an older view. ``limited``:
    whether anything limits requests. ``may_go_on``: whether a turn may create more pods than one decision asks for.
    """

    view_age_max_ms: int
    wall_ms: Callable[[], int]
    status: StatusWriter
    limited: bool = True
    may_go_on: Callable[[], bool] = lambda: False


def turn(claim: Claim, view: View, controller: PodController, ctx: TurnContext, outcome: TurnOutcome) -> Turn:
    """Bring one owner a step closer to its spec.

    ``outcome`` collects what Redis is told at the end: which writes have an answer, what the cache must pass, when to
    look again. Raises TurnFailed, with that, for a turn that is to be retried; ClaimLost from a step ends it at once.
    """
    if claim.owner is None:
        return outcome.finish(Verdict.GONE)
    owner, template = WATCHED[controller.resource].decode(claim.owner.blob), claim.owner.apart
    if claim.expectations is not None and claim.expectations.owner_uid not in ("", owner.uid):
        outcome.again_in(0)  # expectations of a predecessor of the same name: its names and UIDs mean nothing here
        return outcome.finish(Verdict.GONE)
    if claim.counts:
        plan = controller.at_rest(owner, claim.counts) if controller.at_rest else None
        if plan is not None:
            yield from ctx.status.write(owner, plan, claim, controller, outcome)
            return outcome.finish()
        claim = claim._replace(children=(yield from looking.children(owner)))
        if WATCHED[controller.resource].template_apart:  # a claim with counts leaves it out
            template = yield LookApart(controller.resource, template_name(owner))
            if not template:
                outcome.again_in(0)  # the owner has changed since the claim
                return outcome.finish()
    owner = with_template(owner, template)
    rvs = [child.rv for child in claim.children]
    pods = blob_memo.PODS.take(claim.children)
    history = revisions.NONE
    if controller.history:
        history = yield from revisions.construct(owner, pods, controller, claim, outcome)
    writes = yield from expectations.resolve(owner, claim, pods, rvs, view.pods_rv, outcome, ctx.limited)
    snapshot = yield from _snapshot(owner, pods, claim, view, history, writes, controller, ctx, outcome)
    snapshot, plan, versions = yield from _decide(snapshot, pods, rvs, claim, view, controller, ctx, outcome)
    outcome.events += plan.events
    renewed = {node for node, _ in plan.back_offs}
    outcome.changes += [Change.drop(f"{BACK_OFF} {node}") for node in plan.forget if node not in renewed]
    told = None
    if plan.create:
        told = yield from ctx.status.write_overdue(owner, plan, claim, controller, view.waited_ms, outcome)
        yield from _create(plan, snapshot, claim, controller, ctx, outcome)
    yield from _delete(owner, plan, {**versions, **writes.rvs}, history, writes, outcome)
    yield from ctx.status.write(owner, plan, claim, controller, outcome, told=told)
    if outcome.error:
        raise outcome.failure(outcome.error)
    return outcome.finish()


def _snapshot(
    owner: Any,
    pods: tuple[Pod, ...],
    claim: Claim,
    view: View,
    history: revisions.Current,
    writes: OpenWrites,
    controller: PodController,
    ctx: TurnContext,
    outcome: TurnOutcome,
) -> Steps[Any]:
    """What is known, in the form the kind decides on; satisfied when all our answered writes have been read."""
    announced, back_offs, blocked = claim.expectations, _NO_BACK_OFFS, frozenset[str]()
    satisfied = not claim.min_rv and not history.undecided and writes.read
    if announced is not None:
        if not claim.min_rv:  # else a pod that is not there may still have to come
            present = {pod.uid for pod in pods if not pod.deleting_ms}
            satisfied = outcome.deletes_seen(announced.deletes, present) and satisfied
        back_offs = announced.back_offs
        if announced.blocked and satisfied:  # else the cache may not have come to the pod that has the name
            blocked = yield from looking.still_blocked(owner.namespace, announced.blocked, outcome)
    nodes_old = view.nodes_age_ms > ctx.view_age_max_ms
    around = Surroundings(view.nodes, nodes_old, history.hash, history.old, back_offs)
    return controller.snapshot(owner, pods, around, satisfied=satisfied, unanswered=writes.unanswered, blocked=blocked)


def _decide(
    snapshot: Any,
    pods: Sequence[Pod],
    rvs: Sequence[str],
    claim: Claim,
    view: View,
    controller: PodController,
    ctx: TurnContext,
    outcome: TurnOutcome,
) -> Steps[tuple[Any, Plan, Versions]]:
    """Decide; while the plan asks for more, fetch that and decide again. Returns what it was decided on, and the
    versions of the pods it is about. ``pods`` and their ``rvs`` are those of the cache.

    It may ask for related pods, to rank victims. It is decided on a live list where the cache may not be acted on:
    after a loss of announced writes, or to delete on a view that nobody has confirmed for too long. In the former case
    an adoption counts too: if its pod turns out to be gone, more has to be created. Adoptions and releases come last.
    """
    lost = claim.unsettled and not (claim.expectations and claim.expectations.owner_uid)
    too_old = view.pods_age_ms > ctx.view_age_max_ms
    live: Versions | None = None
    while True:
        plan: Plan = controller.decide(snapshot, ctx.wall_ms())
        adopted = snapshot.adopted
        if adopted is not None:
            break
        if plan.wants_related and snapshot.related is None:
            snapshot = yield from looking.with_related(snapshot, controller)
        elif live is None and ((lost and (plan.adopt or plan.create or plan.delete)) or (too_old and plan.delete)):
            snapshot, live = yield from looking.on_live_list(snapshot, outcome)
            outcome.changes.append(Change.settled())
        elif plan.adopt or plan.release:
            snapshot = yield from adoption.claim_pods(snapshot, plan, controller, outcome)
        else:
            break
    if not plan.delete:
        return snapshot, plan, {}
    versions = {pod.uid: rv for pod, rv in zip(pods, rvs, strict=True)} if live is None else live
    return snapshot, plan, {uid: rv for uid, rv in versions.items() if uid not in adopted} if adopted else versions


def _create(
    plan: Plan, snapshot: Any, claim: Claim, controller: PodController, ctx: TurnContext, outcome: TurnOutcome
) -> Steps[None]:
    """Create the plan's pods. If it has as many as a decision may ask for, and all of them were created, decide on more
    by the same snapshot, with these as creates that the cache need not show.

    Otherwise the rest waits until the cache has read all of them, and until a claim has loaded all pods of the owner.
    Upstream ends its sync here.
    """
    owner, pace, until_ms = snapshot.owner, SlowStart(), ctx.wall_ms() + GO_ON_MS
    for plans_left in reversed(range(PLANS_MAX)):
        began_ms = ctx.wall_ms()
        done = yield from acting.create_pods(owner, plan, controller, pace, outcome)
        if not (plans_left and done) or outcome.retry or len(plan.create) < controller.flavour.burst:
            return
        if 2 * ctx.wall_ms() - began_ms > until_ms or not ctx.may_go_on():
            return
        if not (yield from looking.is_as_claimed(claim, controller)):
            return
        snapshot = msgspec.structs.replace(snapshot, unanswered=snapshot.unanswered.with_created(plan))
        plan = controller.decide(snapshot, ctx.wall_ms())
        if not plan.create or plan.delete:
            return


def _delete(
    owner: Any,
    plan: Plan,
    versions: Versions,
    history: revisions.Current,
    writes: OpenWrites,
    outcome: TurnOutcome,
) -> Steps[None]:
    """Pods, even if creates failed; then old revisions, but only if all went well."""
    if plan.delete:
        yield from acting.delete_pods(owner, plan, versions, writes.rvs, outcome)
    if plan.error:
        outcome.failed(plan.error)
    if plan.prune and not outcome.error:
        yield from revisions.prune(plan.prune, history.versions, owner, outcome)
    if plan.again_ms is not None:
        outcome.due_in(plan.again_ms)
