"""Looking closer before acting: related pods for a ranking, a live list where the cache will not do, blocked names."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import msgspec

from oarlock.broker.values import Cached, Change, Claim
from oarlock.controllers.entries import Controller
from oarlock.controllers.objects import wire
from oarlock.controllers.objects.codec import decode_pod
from oarlock.controllers.objects.model import Pod, controller_of
from oarlock.controllers.ownership.orphans import selected_entries
from oarlock.controllers.plan import Plan, Snapshot
from oarlock.controllers.registry import WATCHED
from oarlock.controllers.routing import owner_entry
from oarlock.workers.turn.steps import Listed, ListLive, Look, Step, TurnContext
from oarlock.workers.turn.turn_outcome import TurnOutcome

Versions = Mapping[str, str]
"""uid -> resourceVersion of the pods a decision was made on."""


def still_blocked(
    namespace: str, blocked: Mapping[str, str], outcome: TurnOutcome
) -> Generator[Step, Any, frozenset[str]]:
    """Of the names recorded as borne by foreign pods ("pods/name" -> uid), those whose pod is still there."""
    wanted = {f"{namespace}/{target.partition('/')[2]}": (target, uid) for target, uid in blocked.items()}
    found: list[Cached] = yield Look("pods", ids=tuple(wanted))
    present = {cached.uid for cached in found}
    for target, uid in wanted.values():
        if uid not in present:
            outcome.changes.append(Change.drop(f"blocked {target}"))
    return frozenset(target.partition("/")[2] for target, uid in wanted.values() if uid in present)


def closer(
    claim: Claim,
    snapshot: Any,
    plan: Plan,
    controller: Controller,
    ctx: TurnContext,
    view_age_ms: int,
    outcome: TurnOutcome,
) -> Generator[Step, Any, tuple[Any, Plan, Versions]]:
    """Decide again with what the plan asks for, and on a live list where the cache may not be acted on.

    That is: announced writes whose record was lost, or deletes on a view that nobody has confirmed for too long. For
    the former an adoption counts as well, for more may have to be created when its pod turns out to be gone.
    """
    versions: Versions = {child.uid: child.rv for child in claim.children}
    if plan.wants_related:
        snapshot = yield from _with_related(snapshot, controller)
        plan = controller.decide(snapshot, ctx.wall_ms())
    lost = claim.unsettled and not (claim.expectations and claim.expectations.owner_uid)
    if (lost and (plan.adopt or plan.create or plan.delete)) or (plan.delete and view_age_ms > ctx.view_age_max_ms):
        snapshot, versions = yield from _live(snapshot, outcome)
        outcome.changes.append(Change.settled())
        plan = controller.decide(snapshot, ctx.wall_ms())
        if plan.wants_related:
            snapshot = yield from _with_related(snapshot, controller)
            plan = controller.decide(snapshot, ctx.wall_ms())
    return snapshot, plan, versions


def _live(snapshot: Any, outcome: TurnOutcome) -> Generator[Step, Any, tuple[Any, Versions]]:
    owner = snapshot.owner
    listed: Listed = yield ListLive("pods", owner.namespace)
    outcome.need("pods", listed.rv)  # the cache may be behind the list: what was seen in it is not to be forgotten
    pods: list[Pod] = []
    versions: dict[str, str] = {}
    for raw in listed.items:
        rv, pod = wire.pod_from_json(raw)
        ref = controller_of(pod)
        if ref is None or ref.uid == owner.uid:
            pods.append(pod)
            versions[pod.uid] = rv
    return msgspec.structs.replace(snapshot, pods=tuple(pods), satisfied=True), versions


def _with_related(snapshot: Snapshot, controller: Controller) -> Generator[Step, Any, Snapshot]:
    """Owners under the same controller, the pods the others own, and orphans that these select; those that the owner
    itself selects are in the snapshot already.
    """
    parent = controller_of(snapshot.owner)
    assert parent is not None, "only an owner that is itself controlled has siblings"
    cached: list[Cached] = yield Look(controller.resource, entries=(owner_entry(parent.uid),))
    decode = WATCHED[controller.resource].decode
    siblings = tuple(decode(each.blob) for each in cached)
    others = dict[str, None]()
    for each in siblings:
        if each.uid != snapshot.owner.uid:
            others[owner_entry(each.uid)] = None
            if each.selector is not None and not each.selector.error:
                others |= dict.fromkeys(selected_entries(each.namespace, each.selector))
    found: list[Cached] = (yield Look("pods", entries=tuple(others))) if others else []
    related = tuple(decode_pod(each.blob) for each in found)
    return msgspec.structs.replace(snapshot, siblings=siblings, related=related)
