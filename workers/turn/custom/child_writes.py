"""Writes the children and the status of an object of one's own, and sorts the answers.

A child that is not there is applied without force, and only if no foreign object has its name in the cache. A child
that differs is applied with force, with its UID and resourceVersion. So is one deleted, once that is announced.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from oarlock.broker.values.objects import Cached
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import Outcome, of_apply, of_delete
from oarlock.controllers.comparison import differences
from oarlock.controllers.entries import CustomController
from oarlock.controllers.objects.status import status_merge_patch
from oarlock.controllers.objects.whole import Whole, decode_whole, without_noise
from oarlock.controllers.objects.wire_parts import WireError, rfc3339
from oarlock.controllers.pods.events import NORMAL, WARNING, Event
from oarlock.controllers.wanted import (
    CHANGED,
    Changes,
    Live,
    Update,
    Wanted,
    WantedChild,
    names_of,
    stamped,
    status_change,
)
from oarlock.workers.process.log_line import discreet, line
from oarlock.workers.turn.custom.inputs import of_status
from oarlock.workers.turn.custom.memory import Memory
from oarlock.workers.turn.custom.open_deletes import OpenDeletes, entry_of
from oarlock.workers.turn.custom.rewrites import Rewrites
from oarlock.workers.turn.steps import Announce, Grant, Look, Reserve, Send, Steps, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

log = logging.getLogger("oarlock.worker")

WRITES_MAX = 256
LOOK_AGAIN_MS = 30_000
"""Until a name that a foreign object has is looked at again: the end of such an object wakes nobody."""

_UNDONE = (
    "somebody else writes the status too, and undoes what this controller writes: its writes are slowed down; let one"
    " controller write it, and the others tell by events"
)

Job = WantedChild | Update | Live
"""What a write is for: a child that is not there, one that differs, one that is not wanted."""


def field_manager(controller: CustomController) -> str:
    """In whose name the fields of its children are managed."""
    return f"oarlock-{controller.name}"


def write(
    owner: Whole,
    plan: Changes,
    controller: CustomController,
    memory: Memory,
    deletes: OpenDeletes,
    outcome: TurnOutcome,
) -> Steps[None]:
    """Carry out what is to be done, all at once; what the rate limit leaves over, the next turn does."""
    create = _without_those_inside((yield from _free(plan.create, outcome)))
    jobs: list[Job] = [*create, *plan.update, *plan.delete]
    if not jobs:
        return
    grant: Grant = yield Reserve(min(len(jobs), WRITES_MAX))
    if grant.granted < len(jobs):
        outcome.again_in(grant.wait_ms)
    jobs = jobs[: grant.granted]
    if not jobs:
        return
    entries = tuple(entry_of(job) for job in jobs if isinstance(job, Live))
    if entries:
        yield Announce(owner.uid, entries)
        outcome.announced(entries)
    manager = field_manager(controller)
    answers: list[Answer] = yield Send(tuple(_write_of(job, manager) for job in jobs), prepaid=True)
    for job, answer in zip(jobs, answers, strict=True):
        _sort(job, answer, memory, deletes, outcome)


def _free(create: Sequence[WantedChild], outcome: TurnOutcome) -> Steps[list[WantedChild]]:
    """Those whose names nobody has in the cache. Says so of the others: they are not ours, else the claim had them."""
    by_resource: dict[str, dict[str, WantedChild]] = defaultdict(dict)
    for child in create:
        by_resource[child.resource][f"{child.namespace}/{child.name}" if child.namespace else child.name] = child
    foreign: list[WantedChild] = []
    for resource, children in by_resource.items():
        cached: list[Cached] = yield Look(resource, ids=tuple(children))
        foreign += [children[decode_whole(each.blob).key] for each in cached]
    if foreign:
        outcome.events += [Event(WARNING, "NameTaken", _taken(child)) for child in foreign]
        outcome.failed(f"{names_of(foreign)}: there already, and not ours")
        outcome.due_in(LOOK_AGAIN_MS)
    return [child for child in create if child not in foreign]


def _without_those_inside(create: list[WantedChild]) -> list[WantedChild]:
    """Without the children in a Namespace that is to be made beside them, which would be refused. When the cache shows
    the Namespace, the key is queued.
    """
    made = {child.name for child in create if (child.api_version, child.kind) == ("v1", "Namespace")}
    return [child for child in create if child.namespace not in made]


def tell_taken(plan: Changes, outcome: TurnOutcome) -> None:
    """Say which children another controller makes. The event of a child's end wakes the key."""
    for child, other in plan.taken:
        told = f"{child.kind} {child.name} is made by the controller {other}; it is left alone: give it another name"
        outcome.events.append(Event(WARNING, "NameTaken", told))
        outcome.failed(told)


def _taken(child: WantedChild) -> str:
    return f"{child.kind} {child.name} is there already and belongs to another; it is left alone"


def _write_of(job: Job, manager: str) -> Write:
    match job:
        case WantedChild():
            return Write("apply", job.resource, job.namespace, job.name, job.body, manager=manager)
        case Update(child=child, live=live):
            body = _with_versions(child.body, live)
            return Write("apply", child.resource, child.namespace, child.name, body, manager=manager, force=True)
        case Live(resource=resource, rv=rv, obj=obj):
            return Write("delete", resource, obj.namespace, obj.name, uid=obj.uid, rv=rv, propagation="Background")


def _with_versions(body: bytes, live: Live) -> bytes:
    obj: dict[str, Any] = msgspec.json.decode(body)
    meta = obj["metadata"]
    meta |= {"uid": live.obj.uid, "resourceVersion": live.rv}
    meta["annotations"][CHANGED] = live.rv  # an apply that says nothing new would leave the resourceVersion as it is
    return msgspec.json.encode(obj)


def _sort(job: Job, answer: Answer, memory: Memory, deletes: OpenDeletes, outcome: TurnOutcome) -> None:
    match job:
        case Live():
            _sort_delete(job, answer, deletes, outcome)
        case WantedChild():
            _sort_apply(job, "Created", answer, memory, outcome)
        case Update():
            _sort_apply(job.child, "Updated", answer, memory, outcome)
            if answer.ok and answer.resource_version != job.live.rv:
                deletes.changed(job.live)


def _sort_apply(child: WantedChild, done: str, answer: Answer, memory: Memory, outcome: TurnOutcome) -> None:
    result = of_apply(answer)
    outcome.heed_throttling(answer)
    match result:
        case Outcome.DONE:
            outcome.cache_must_pass(child.resource, answer.resource_version)
            outcome.followed = True
            outcome.events.append(Event(NORMAL, done, f"{done} {child.kind} {child.name}"))
            _remember(child, answer, memory)
        case Outcome.NAMESPACE_TERMINATING:
            pass  # nothing is wrong: the owner goes too
        case Outcome.TOO_LATE | Outcome.NOT_SENT | Outcome.THROTTLED | Outcome.UNKNOWN:
            outcome.retry = True  # whatever became of it, it shows in the cache
        case Outcome.CONFLICT if done == "Updated":
            outcome.retry = True  # it has changed since it was compared
        case _:
            told = f"{child.kind} {child.name}: {discreet(answer.message)}"
            outcome.failed(told)
            outcome.events.append(Event(WARNING, "ApplyFailed", told))


def _remember(child: WantedChild, answer: Answer, memory: Memory) -> None:
    try:
        live = without_noise(answer.body, child.kind)
    except WireError:
        return
    memory.settle(answer.uid, child.digest, differences(msgspec.json.decode(child.body), live))


def _sort_delete(live: Live, answer: Answer, deletes: OpenDeletes, outcome: TurnOutcome) -> None:
    result, what = of_delete(answer), f"{live.resource} {live.obj.name}"
    deletes.answered(live, result)
    outcome.heed_throttling(answer)
    match result:
        case Outcome.DONE:
            outcome.followed = True
            outcome.events.append(Event(NORMAL, "Deleted", f"Deleted {what}"))
        case Outcome.GONE:
            pass
        case Outcome.REFUSED:
            outcome.failed(f"delete {what}: {discreet(answer.message)}")
            outcome.events.append(Event(WARNING, "DeleteFailed", f"{what}: {discreet(answer.message)}"))
        case _:
            outcome.retry = True  # it has changed since it was compared, or nobody knows


def write_status(
    owner: Whole,
    wanted: Wanted,
    rv: str,
    controller: CustomController,
    memory: Memory,
    rewrites: Rewrites,
    outcome: TurnOutcome,
) -> Steps[bool]:
    """Write the status if it differs from the cached one. Returns whether it does.

    Where somebody else undoes it each time, the writes wait, longer and longer: each would wake the other.
    """
    change = None
    if wanted.status is not None:
        old = msgspec.json.decode(owner.body).get("status") or {}
        change = status_change(old, stamped(old, msgspec.json.decode(wanted.status), rfc3339(outcome.now_ms)))
    kept = f"status {msgspec.json.encode(change).decode()}"
    if change is None or (owner.uid, kept) in memory.settled:  # the latter: the server does not keep it
        rewrites.none(outcome)
        return False
    assert wanted.status is not None
    if waits_ms := memory.status_waits_ms(owner.uid, wanted.status, outcome.now_ms):
        outcome.due_in(waits_ms)
        return True
    patch = status_merge_patch(owner.uid, rv, change)
    (answer,) = yield Send((Write("status", controller.resource, owner.namespace, owner.name, patch),))
    assert isinstance(answer, Answer)
    outcome.heed_throttling(answer)
    result, said = yield from of_status(answer, controller.resource, owner)
    match result:
        case Outcome.DONE:
            outcome.cache_must_pass(controller.resource, answer.resource_version)
            memory.settle(owner.uid, kept, (("status", ""),) if answer.resource_version == rv else ())
            rewrites.one(rv, answer.resource_version, outcome, controller.every_ms)
            if answer.resource_version != rv and memory.status_written(owner.uid, wanted.status, outcome.now_ms):
                outcome.events.append(Event(WARNING, "StatusUndone", _UNDONE))
                log.warning(line("status_undone", queue=controller.queue, key=owner.key))
        case Outcome.GONE:
            pass  # the event of its end wakes the key
        case Outcome.REFUSED:
            outcome.failed(f"status of {owner.key}: {discreet(said)}")
            outcome.events.append(Event(WARNING, "StatusFailed", discreet(said)))
        case _:
            outcome.retry = True
    return True
