"""Creates and deletes: announced, then sent, then sorted by what the answers prove.

Upstream: manageReplicas of pkg/controller/replicaset/replica_set.go. Differences: a create bears its name and a delete
its UID and resourceVersion, so each can be repeated by whomever.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from oarlock.broker.expectations import BACK_OFF, REST
from oarlock.broker.values import Change, Entry, NameTaken
from oarlock.broker.versions import newer
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import Outcome, of_create, of_delete, of_delete_conflict, taken_for_certain
from oarlock.controllers.entries import Controller
from oarlock.controllers.objects import wire
from oarlock.controllers.objects.codec import decode_pod
from oarlock.controllers.objects.model import Pod, controller_of
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.plan import Plan
from oarlock.controllers.pods import events
from oarlock.controllers.pods.pod_template import TemplateError
from oarlock.controllers.pods.slow_start import SlowStart
from oarlock.workers.turn.steps import Announce, Grant, Read, Reserve, Send, Step, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

Acting = Generator[Step, Any, None]


def create_pods(owner: Claimer, plan: Plan, controller: Controller, outcome: TurnOutcome) -> Acting:
    """Create the plan's pods in batches of 1, 2, 4, ...; the first batch with a failure is the last.

    A create that was sent before is announced anew, for the time in which it may land begins anew. It goes last: where
    it fails again, it must not keep the others from being sent.
    """
    try:
        bodies = controller.pod_bodies(owner, plan.revision, plan.nodes)
    except TemplateError as error:
        outcome.failed(str(error))
        return
    ordered = sorted(plan.create, key=lambda name: f"create pods/{name}" in outcome.open)
    pace, names = SlowStart(len(ordered)), iter(ordered)
    while pace.batch:
        grant: Grant = yield Reserve(pace.batch)
        writes = tuple(
            Write("create", "pods", owner.namespace, name, bodies.body(name)) for name in islice(names, grant.granted)
        )
        if writes:
            entries = tuple(Entry("create", write.target, hint=_hint(plan, write.name)) for write in writes)
            borne: list[NameTaken] = yield Announce(owner.uid, entries)
            if borne:
                block(owner, borne, outcome)
                return
            outcome.announced(entries)
            answers: list[Answer] = yield Send(writes, prepaid=True)
            failures = yield from created(owner, writes, answers, outcome)
        if grant.granted < pace.batch:
            outcome.followed = True
            outcome.again_in(grant.wait_ms)  # the rate limit has no more for now: others may have the worker
            return
        pace.answered(failures)


def _hint(plan: Plan, name: str) -> str:
    """The node that the create, and later the name that it reserves, is for."""
    node = plan.nodes.get(name)
    return f"node={node}" if node else ""


def block(owner: Claimer, borne: Sequence[NameTaken], outcome: TurnOutcome) -> None:
    """Names that cached pods bear, though the decision did not see them. The next turn, at once, knows better.

    One of ours came late, or an orphan appeared: it will be read, or adopted. A foreign pod blocks its name while it
    lives.
    """
    for target, cached in borne:
        ref = controller_of(decode_pod(cached.blob))
        if ref is not None and ref.uid != owner.uid:
            outcome.changes.append(Change.set(f"blocked {target}", f"uid={cached.uid}"))
    outcome.again_in(0)


def created(
    owner: Claimer, writes: Sequence[Write], answers: Sequence[Answer], outcome: TurnOutcome
) -> Generator[Step, Any, int]:
    """Enter the answers to creates. Returns how many of them end the slow start."""
    failures, taken = 0, []
    for write, answer in zip(writes, answers, strict=True):
        result = of_create(answer)
        if result is Outcome.EXISTS:
            taken.append((write, taken_for_certain(answer)))
            continue
        outcome.sort(write, answer, result)
        if result is Outcome.DONE:
            outcome.need("pods", answer.resource_version)
            outcome.followed = True
            outcome.events.append(events.created(write.name))
        elif result is Outcome.NAMESPACE_TERMINATING:
            failures += 1  # nothing is wrong, the owner goes too; but each pod that goes asks for all of them again
        elif result is Outcome.TOO_LATE:
            failures, outcome.retry = failures + 1, True
        else:
            failures += 1
            if result in (Outcome.REFUSED, Outcome.CONFLICT):
                outcome.refused(write)
            outcome.failed(answer.message)
            outcome.events.append(events.create_failed(answer.message))
    if taken:
        yield from _sort_taken(owner, taken, outcome)
    return failures


def _sort_taken(owner: Claimer, taken: Sequence[tuple[Write, bool]], outcome: TurnOutcome) -> Acting:
    """AlreadyExists: by whom? Ours: the create is done. An orphan: wait to read it. Foreign: the name is blocked.

    ``taken``: with each, whether it was refused for certain. If not, nobody under the name proves nothing.
    """
    answers: list[Answer] = yield Read("pods", owner.namespace, tuple(write.name for write, _ in taken))
    for (write, certain), answer in zip(taken, answers, strict=True):
        if certain and answer.code == 404 and answer.status is not None:
            outcome.settle(write)  # and the bearer has gone since
            outcome.again_in(0)
            continue
        pod = pod_of(answer)
        if pod is None:
            outcome.retry = True  # nothing learned: the name stays announced
            continue
        outcome.settle(write)
        outcome.need("pods", answer.resource_version)
        ref = controller_of(pod)
        if ref is not None and ref.uid != owner.uid:
            outcome.changes.append(Change.set(f"blocked {write.target}", f"uid={pod.uid}"))
        outcome.again_in(0)


def pod_of(answer: Answer) -> Pod | None:
    """The pod in an answer; None where there is none to be read."""
    if not answer.ok:
        return None
    try:
        return wire.pod_from_json(answer.body)[1]
    except wire.WireError:
        return None


def delete_pods(
    owner: Claimer, plan: Plan, versions: Mapping[str, str], again: Container[str], outcome: TurnOutcome
) -> Acting:
    """Delete the plan's victims all at once, each only if it is still the pod that was ranked.

    ``again``: UIDs of those whose delete was sent before. One without a version was changed by its adoption in this
    very turn: it waits until the cache has read that.
    """
    victims = [(name, uid) for name, uid in plan.delete if uid in versions]
    if not victims:
        return
    grant: Grant = yield Reserve(len(victims))
    writes = tuple(
        Write("delete", "pods", owner.namespace, name, uid=uid, rv=versions[uid])
        for name, uid in victims[: grant.granted]
    )
    if writes:
        entries = [Entry("delete", write.target, write.uid, write.rv) for write in writes]
        entries += [Entry(BACK_OFF, node, hint=text) for node, text in _back_offs(plan, writes)]
        entries += [Entry(REST, write.target, hint=f"uid={write.uid}") for write in writes if write.uid in plan.rests]
        yield Announce(owner.uid, tuple(entries))
        outcome.announced(entries)
        going = {write.uid for write in writes}
        outcome.age_ratios += [ratio for uid, ratio in plan.age_ratios if uid in going]
        answers: list[Answer] = yield Send(writes, prepaid=True)
        yield from deleted(writes, answers, again, outcome)
    if grant.granted < len(victims):
        outcome.again_in(grant.wait_ms)


def _back_offs(plan: Plan, deletes: Iterable[Write]) -> list[tuple[str, str]]:
    """Those of the failed pods that go now. One that is put off keeps its node's back-off as it is, or it would have to
    wait for the delay that its own end is to begin.
    """
    if not plan.back_offs:
        return []
    going = {write.uid for write in deletes}
    nodes = {pod.target_node for pod in plan.claimed if pod.uid in going and pod.phase == "Failed"}
    return [(node, text) for node, text in plan.back_offs if node in nodes]


def deleted(writes: Sequence[Write], answers: Sequence[Answer], again: Container[str], outcome: TurnOutcome) -> Acting:
    """Enter the answers to deletes.

    The refusal of one that was sent before says nothing of the earlier request. Only where the pod has changed can
    neither take effect any more.
    """
    conflicts = []
    for write, answer in zip(writes, answers, strict=True):
        result = of_delete(answer)
        if result is Outcome.CONFLICT:
            conflicts.append(write)
            continue
        if result in (Outcome.DONE, Outcome.GONE):
            outcome.answered_delete(write)
            if result is Outcome.DONE:
                outcome.events.append(events.deleted(write.name))
            continue
        outcome.sort(write, answer, result, again=write.uid in again)
        if result is Outcome.TOO_LATE:
            outcome.retry = True
        else:
            outcome.failed(events.delete_error(answer.message))
            outcome.events.append(events.delete_failed(answer.message))
    if not conflicts:
        return
    looks: list[Answer] = yield Read("pods", conflicts[0].namespace, tuple(write.name for write in conflicts))
    for write, look in zip(conflicts, looks, strict=True):
        _sort_conflict(write, look, write.uid in again, outcome)


def _sort_conflict(write: Write, look: Answer, again: bool, outcome: TurnOutcome) -> None:
    """A delete met a conflict; the look was made after it. A 409 may come from an admission, too: then the pod is as it
    was, and of two requests the earlier one may still take effect.
    """
    result, pod = of_delete_conflict(look, write.uid), pod_of(look)
    if result is Outcome.GONE or (result is Outcome.CHANGED and pod is not None and pod.deleting_ms):
        outcome.answered_delete(write)
        return
    outcome.retry = True
    if result is Outcome.CHANGED and pod is not None and (not again or newer(look.resource_version, write.rv)):
        outcome.settle(write)  # not deleted for certain: rank again once the change has been read
        outcome.need("pods", look.resource_version)
