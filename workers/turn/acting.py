"""Creates and deletes: announced, then sent, then sorted by what the answers prove.

Upstream: manageReplicas of pkg/controller/replicaset/replica_set.go. Difference: a create carries its name, a delete
its UID and resourceVersion, so any worker can repeat them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from oarlock.broker.expectations import BACK_OFF, REST
from oarlock.broker.values.turns import Change, Entry, NameTaken
from oarlock.broker.versions import newer
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import DONE, EXISTS, Outcome, of_create, of_delete, of_delete_conflict, taken_for_certain
from oarlock.controllers.entries import PodController
from oarlock.controllers.objects import wire
from oarlock.controllers.objects.codec import decode_pod
from oarlock.controllers.objects.model import Pod, controller_of
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.plan import Plan
from oarlock.controllers.pods import events
from oarlock.controllers.pods.pod_template import TemplateError
from oarlock.controllers.pods.slow_start import SlowStart
from oarlock.workers.turn.steps import Announce, Grant, Read, Reserve, Send, Steps, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

AHEAD = 31
"""Creates that the first announcement of a turn names, if there are so many: the waves of 1, 2, 4, 8 and 16. Once these
have gone through, the next one names all others. So an owner whose first create fails names few in vain.
"""


def create_pods(
    owner: Claimer, plan: Plan, controller: PodController, pace: SlowStart, outcome: TurnOutcome
) -> Steps[bool]:
    """Create the plan's pods in waves of 1, 2, 4, ...; the first wave with a failure is the last. ``pace``: that of the
    turn, which may carry out several plans. Returns whether all were created.

    An announcement names the waves that follow, too. The names that are never sent then are expected no longer. A
    create that was sent by an earlier turn is announced again only with its own wave, because the time in which it may
    land begins again. It goes last: if it fails again, it must not keep the others from being sent.
    """
    try:
        bodies = controller.pod_bodies(owner, plan.revision, plan.nodes)
    except TemplateError as error:
        outcome.failed(str(error))
        return False
    again = {name for name in plan.create if f"create pods/{name}" in outcome.open}
    ordered = sorted(plan.create, key=again.__contains__)
    fresh, sent, named = len(ordered) - len(again), 0, 0
    pace.add(len(ordered))
    while pace.batch:
        grant: Grant = yield Reserve(pace.batch, 0 if pace.successes else pace.skipped - pace.batch)
        wave = ordered[sent : sent + grant.granted]
        if sent + len(wave) > named:
            upto = max(sent + len(wave), fresh if pace.successes else min(AHEAD, fresh))
            if not (yield from _announce(owner, plan, ordered[named:upto], outcome)):
                break
            named = upto
        failures = 0
        if wave:
            writes = [Write("create", "pods", owner.namespace, name, bodies.body(name)) for name in wave]
            answers: list[Answer] = yield Send(tuple(writes), prepaid=True)
            sent += len(wave)
            failures = yield from created(owner, writes, answers, outcome)
        if len(wave) < pace.batch:
            outcome.followed = True
            outcome.again_in(grant.wait_ms)  # the rate limit has no more for now: other turns may have the worker
            break
        pace.answered(failures)
    for name in ordered[sent:named]:
        outcome.over(f"create pods/{name}")
    return not pace.failures and not pace.skipped


def _announce(owner: Claimer, plan: Plan, names: Iterable[str], outcome: TurnOutcome) -> Steps[bool]:
    """Announce creates. False: cached pods have some of the names, so none is announced. The decision did not see these
    pods; that of the next turn, at once, does.
    """
    entries = tuple(Entry("create", f"pods/{name}", hint=_hint(plan, name)) for name in names)
    taken: list[NameTaken] = yield Announce(owner.uid, entries)
    for target, cached in taken:
        _block_if_foreign(owner, target, decode_pod(cached.blob), outcome)
    if taken:
        outcome.again_in(0)
    else:
        outcome.announced(entries)
    return not taken


def _hint(plan: Plan, name: str) -> str:
    """The node that the create is for, and later the name that it reserves."""
    node = plan.nodes.get(name)
    return f"node={node}" if node else ""


def _block_if_foreign(owner: Claimer, target: str, pod: Pod, outcome: TurnOutcome) -> None:
    """A foreign pod blocks its name while it lives. If it is ours, or an orphan, the next turn reads or adopts it."""
    ref = controller_of(pod)
    if ref is not None and ref.uid != owner.uid:
        outcome.changes.append(Change.set(f"blocked {target}", f"uid={pod.uid}"))


def created(owner: Claimer, writes: Sequence[Write], answers: Sequence[Answer], outcome: TurnOutcome) -> Steps[int]:
    """Enter the answers to creates. Returns how many of them end the slow start.

    A terminating namespace ends it too: otherwise each pod that goes would ask for all of them again.
    """
    failures, taken = 0, []
    for write, answer in zip(writes, answers, strict=True):
        result = of_create(answer)
        if result is EXISTS:
            taken.append((write, taken_for_certain(answer)))
            continue
        outcome.sort(write, answer, result)
        if result is DONE:
            outcome.cache_must_pass("pods", answer.resource_version)
            outcome.followed = True
            outcome.events.append(events.created(write.name))
            continue
        failures += 1
        if result is Outcome.TOO_LATE:
            outcome.retry = True
        elif result is not Outcome.NAMESPACE_TERMINATING:  # else nothing is wrong: the owner goes too
            if result in (Outcome.REFUSED, Outcome.CONFLICT):
                outcome.refused(write)
            outcome.failed(answer.message)
            outcome.events.append(events.create_failed(answer.message))
    if taken:
        yield from _sort_taken(owner, taken, outcome)
    return failures


def _sort_taken(owner: Claimer, taken: Sequence[tuple[Write, bool]], outcome: TurnOutcome) -> Steps[None]:
    """AlreadyExists: whose pod is it? Ours: the create is done. An orphan: wait to read it. Foreign: block the name.

    ``taken``: with each write, whether it was refused for certain. If not, a name without a pod proves nothing.
    """
    answers: list[Answer] = yield Read("pods", owner.namespace, tuple(write.name for write, _ in taken))
    for (write, certain), answer in zip(taken, answers, strict=True):
        pod, gone_since = pod_of(answer), certain and answer.code == 404 and answer.status is not None
        if pod is None and not gone_since:
            outcome.retry = True  # nothing learned: the name stays announced
            continue
        outcome.answered(write)
        outcome.again_in(0)
        if pod is not None:
            outcome.cache_must_pass("pods", answer.resource_version)
            _block_if_foreign(owner, write.target, pod, outcome)


def pod_of(answer: Answer) -> Pod | None:
    """The pod in an answer; None if there is none that can be read."""
    if not answer.ok:
        return None
    try:
        return wire.pod_from_json(answer.body)[1]
    except wire.WireError:
        return None


def delete_pods(
    owner: Claimer, plan: Plan, versions: Mapping[str, str], again: Container[str], outcome: TurnOutcome
) -> Steps[None]:
    """Delete the plan's victims all at once, each only if it is still the pod that was ranked.

    ``again``: UIDs whose delete was sent before. A victim without a version was adopted, and so changed, in this very
    turn: it waits until the cache has read that.
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
    """The back-offs of the failed pods that go now. A pod that is put off keeps its node's back-off as it is: otherwise
    it would wait for the delay that its own end is to begin.
    """
    if not plan.back_offs:
        return []
    going = {write.uid for write in deletes}
    nodes = {pod.target_node for pod in plan.claimed if pod.uid in going and pod.phase == "Failed"}
    return [(node, text) for node, text in plan.back_offs if node in nodes]


def deleted(
    writes: Sequence[Write], answers: Sequence[Answer], again: Container[str], outcome: TurnOutcome
) -> Steps[None]:
    """Enter the answers to deletes.

    The refusal of a delete that was sent before says nothing about the earlier request. Only if the pod has changed can
    neither request take effect any more.
    """
    conflicts = []
    for write, answer in zip(writes, answers, strict=True):
        result = of_delete(answer)
        if result is Outcome.CONFLICT:
            conflicts.append(write)
            continue
        if result in (Outcome.DONE, Outcome.GONE):
            outcome.delete_answered(write)
            if result is Outcome.DONE:
                outcome.followed = True
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
    """A delete met a conflict; the look was made after it. A 409 may come from an admission plugin, too: then the pod
    is unchanged, and the earlier of two requests may still take effect.
    """
    result, pod = of_delete_conflict(look, write.uid), pod_of(look)
    if result is Outcome.GONE or (result is Outcome.CHANGED and pod is not None and pod.deleting_ms):
        outcome.delete_answered(write)
        return
    outcome.retry = True
    if result is Outcome.CHANGED and pod is not None and (not again or newer(look.resource_version, write.rv)):
        outcome.answered(write)  # certainly not deleted: rank again once the change has been read
        outcome.cache_must_pass("pods", look.resource_version)
