"""Puts the revisions of an owner's template in order before anything is decided about its pods.

None of these writes is announced. Name and content of a revision are functions of the owner's spec; changes carry the
resourceVersion they were made from, and deletes the UID too. So a worker that repeats one does no harm.
Upstream: constructHistory, snapshot, dedupCurHistories and cleanupHistory of pkg/controller/daemon/update.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from oarlock.broker.values.claims import Claim
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import Outcome, of_change, of_create, of_delete
from oarlock.controllers.entries import Controller
from oarlock.controllers.history import bodies
from oarlock.controllers.history.decide import History, HistoryOwner, decide_history, hash_of, mislabelled
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision, revision_hash, revision_name
from oarlock.controllers.history.wire import revision_from_json
from oarlock.controllers.objects.codec import decode_revision
from oarlock.controllers.objects.model import Pod, controller_of
from oarlock.controllers.objects.wire import WireError
from oarlock.controllers.ownership import claim as claims
from oarlock.workers.turn import adoption
from oarlock.workers.turn.looking import LiveOwner, live_owner
from oarlock.workers.turn.steps import Grant, Read, Reserve, Send, Steps, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

RESOURCE, KIND = "controllerrevisions", "ControllerRevision"
RELABELS_MAX = 250  # in one turn: as many pods as it may create or delete
FOREIGN_AGAIN_MS = 10_000
"""When to look again for a revision of ours if another owner's was used: the end of that one wakes nobody here."""


class Current(NamedTuple):
    """The revisions in order. ``hash``: label of pods of the current template. ``old``: the other revisions.
    ``versions``: the resourceVersion of each by UID. ``undecided``: nothing is to be done about the pods now, because
    their labels were changed and the cache has yet to pass that, or because the terminating namespace refused the
    revision that they would be of.
    """

    hash: str
    old: tuple[ControllerRevision, ...]
    versions: Mapping[str, str]
    undecided: bool = False


NONE = Current("", (), {})
"""For owners that keep no revisions."""


def construct(
    owner: HistoryOwner, pods: tuple[Pod, ...], controller: Controller, claim: Claim, outcome: TurnOutcome
) -> Steps[Current]:
    """See that there is exactly one revision of the owner's template, and that it is the latest.

    The claim's revisions and ``pods``: the owner's and orphans of its namespace. While the cache has not passed our own
    writes of revisions, nothing is written. Raises TurnFailed for every write that is not known to have succeeded, and
    if the cached owner is not the live one.
    """
    revisions = claim.others.get(RESOURCE, ())
    known = tuple(decode_revision(each.blob) for each in revisions)
    versions = {each.uid: each.rv for each in revisions}
    history = decide_history(owner, known)
    if not history.writes:
        return Current(history.hash, history.old, versions)
    if _waits(claim, RESOURCE):
        revision = yield from _hash_unwritten(owner, history, controller, claim, outcome)
        return Current(revision, history.old, versions)
    adopted: dict[str, str] | None = None
    if history.adopt or history.release:
        adopted = yield from adoption.carry_out(
            owner, history.adopt, history.release, RESOURCE, KIND, controller, outcome
        )
        versions |= adopted
        history = decide_history(owner, known, frozenset(adopted))
    if history.unlabelled:
        known = yield from _label(known, history.unlabelled, versions, outcome)
        history = decide_history(owner, known, None if adopted is None else frozenset(adopted))
    if history.create:
        revision, written = yield from _create(owner, history, controller, outcome)
        return Current(revision, history.old, versions, undecided=not written)
    relabelled = False
    if history.duplicates and not _waits(claim, "pods"):
        strays = mislabelled(history, claims.claim(owner, pods).kept)
        relabelled = yield from _relabel(owner, history.hash, strays, outcome)
        deletes = [_delete(each, versions) for each in history.duplicates]
        yield from _done(deletes, "delete duplicate", outcome, gone_will_do=True)
    if history.renumber and history.current is not None:
        current = history.current
        patch = bodies.renumber_patch(current, versions[current.uid], history.number)
        yield from _done([_patch(current, patch)], "renumber", outcome)
    return Current(history.hash, history.old, versions, relabelled)


def prune(
    revisions: Iterable[ControllerRevision], versions: Mapping[str, str], owner: HistoryOwner, outcome: TurnOutcome
) -> Steps[None]:
    """Delete old revisions. A failure is an error of the turn."""
    writes = tuple(_delete(each, versions) for each in revisions)
    if not writes:
        return
    grant: Grant = yield Reserve(len(writes))
    if grant.granted < len(writes):
        outcome.again_in(grant.wait_ms)
    sent = writes[: grant.granted]
    answers: list[Answer] = (yield Send(sent, prepaid=True)) if sent else []
    for write, answer in zip(sent, answers, strict=True):
        result = of_delete(answer)
        if result is Outcome.DONE:
            outcome.cache_must_pass(RESOURCE, answer.resource_version)
        elif result is Outcome.TOO_LATE:
            outcome.retry = True
        elif result is not Outcome.GONE:
            outcome.heed_throttling(answer)
            outcome.failed(f"clean up revisions: {owner.namespace}/{write.name}: {answer.message}")


def _waits(claim: Claim, resource: str) -> bool:
    """Whether the cache has yet to pass a write of ours."""
    return f"{resource}=" in claim.min_rv


def _hash_unwritten(
    owner: HistoryOwner, history: History, controller: Controller, claim: Claim, outcome: TurnOutcome
) -> Steps[str]:
    """The current hash without making a revision. Its collision count may be one of ours that the cache lacks."""
    if not history.create or not _waits(claim, controller.resource):
        return history.hash
    live = yield from _live(owner, controller, outcome)
    return history.hash if live.gone else revision_hash(owner.template_digest, live.owner.status.collision_count)


def _live(owner: HistoryOwner, controller: Controller, outcome: TurnOutcome) -> Steps[LiveOwner]:
    live = yield from live_owner(owner, controller)
    if live.error and not live.gone:
        raise outcome.failure(f"revision of {owner.key}: {live.error}")
    return live


def _label(
    known: tuple[ControllerRevision, ...],
    unlabelled: Sequence[ControllerRevision],
    versions: dict[str, str],
    outcome: TurnOutcome,
) -> Steps[tuple[ControllerRevision, ...]]:
    """Label revisions that have no hash. Returns all that are known, as they are now."""
    patches = [_patch(each, bodies.label_revision_patch(each, versions[each.uid])) for each in unlabelled]
    rvs = yield from _done(patches, "label", outcome)
    labelled = {}
    for each, rv in zip(unlabelled, rvs, strict=True):
        versions[each.uid] = rv
        labelled[each.uid] = msgspec.structs.replace(each, labels=each.labels | {HASH_LABEL: each.name})
    return tuple(labelled.get(each.uid, each) for each in known)


def _create(
    owner: HistoryOwner, history: History, controller: Controller, outcome: TurnOutcome
) -> Steps[tuple[str, bool]]:
    """Create the revision of the template. Returns its hash, and whether it exists now.

    A terminating namespace refuses it for good; that is no failure, because the owner goes too. A gone owner is none
    either: the event of its end wakes the key.
    """
    live = yield from _live(owner, controller, outcome)
    if live.gone:
        return history.hash, False
    if live.owner.generation != owner.generation:
        cached, now = owner.generation, live.owner.generation
        raise outcome.failure(f"revision of {owner.key}: the cache has generation {cached}, the API {now}")
    revision = revision_hash(owner.template_digest, live.owner.status.collision_count)
    name = revision_name(owner.name, revision)
    try:
        annotations = bodies.annotations_of(live.raw)
        body = bodies.revision_body(owner, controller.flavour, annotations, name, revision, history.number)
    except ValueError as error:
        raise outcome.failure(f"revision of {owner.key}: {error}") from None
    write = Write("create", RESOURCE, owner.namespace, name, body)
    (answer,) = yield Send((write,))
    match of_create(answer):
        case Outcome.DONE:
            outcome.cache_must_pass(RESOURCE, answer.resource_version)
            return revision, True
        case Outcome.EXISTS:
            revision = yield from _taken(owner, name, live, controller, outcome)
            return revision, True
        case Outcome.NAMESPACE_TERMINATING:
            return revision, False
        case _:
            raise outcome.failure(_error("create", write, answer, outcome))


def _taken(owner: HistoryOwner, name: str, live: LiveOwner, controller: Controller, outcome: TurnOutcome) -> Steps[str]:
    """The name is taken. If by the same template: that is the wanted revision, whoever owns it. If by another: count
    the collision, so that the next turn uses another name, and fail.
    """
    what = f"{KIND} {owner.namespace}/{name}"
    (look,) = yield Read(RESOURCE, owner.namespace, (name,))
    if not look.ok:
        raise outcome.failure(f"{what} exists already, reading it: {look.message}")
    try:
        rv, found = revision_from_json(look.body)
    except WireError as error:
        raise outcome.failure(f"{what} exists already: {error}") from None
    if found.digest == owner.template_digest:
        ref = controller_of(found)
        if ref is not None and ref.uid != owner.uid:
            outcome.again_in(FOREIGN_AGAIN_MS)
        else:
            outcome.cache_must_pass(RESOURCE, rv)
        return hash_of(found)
    # The patch carries the version of the live look: if the count has changed since, the server refuses it.
    count = (live.owner.status.collision_count or 0) + 1
    patch = bodies.collision_patch(owner.uid, count, live.rv)
    write = Write("status", controller.resource, owner.namespace, owner.name, patch, owner.uid)
    (answer,) = yield Send((write,))
    result = of_change(answer)
    if result is Outcome.DONE:
        outcome.cache_must_pass(controller.resource, answer.resource_version)
        raise outcome.failure(f"{what} holds another template: the collision count is {count} now")
    outcome.heed_throttling(answer)
    raise outcome.failure(f"{what} holds another template, raising the collision count to {count}: {answer.message}")


def _relabel(owner: HistoryOwner, revision: str, strays: Sequence[Pod], outcome: TurnOutcome) -> Steps[bool]:
    """Label these pods with the revision that is kept. Returns whether there were any."""
    if not strays:
        return False
    grant: Grant = yield Reserve(min(len(strays), RELABELS_MAX))
    writes = [
        Write("patch", "pods", pod.namespace, pod.name, bodies.relabel_pod_patch(pod.uid, revision), pod.uid)
        for pod in strays[: grant.granted]
    ]
    if writes:
        yield from _done(writes, "label", outcome, prepaid=True, gone_will_do=True)
    if len(writes) < len(strays):  # their revisions must not go before
        outcome.least_wait_ms = max(outcome.least_wait_ms, grant.wait_ms)
        raise outcome.failure(f"{len(strays) - len(writes)} pods of {owner.key} are yet to be labelled {revision}")
    return True


def _patch(revision: ControllerRevision, body: bytes) -> Write:
    return Write("patch", RESOURCE, revision.namespace, revision.name, body, revision.uid)


def _delete(revision: ControllerRevision, versions: Mapping[str, str]) -> Write:
    rv = versions.get(revision.uid, "")
    return Write("delete", RESOURCE, revision.namespace, revision.name, uid=revision.uid, rv=rv)


def _done(
    writes: Sequence[Write], verb: str, outcome: TurnOutcome, *, prepaid: bool = False, gone_will_do: bool = False
) -> Steps[list[str]]:
    """Send changes and deletes. Returns the resourceVersion of each; raises TurnFailed for the first that failed."""
    answers: list[Answer] = yield Send(tuple(writes), prepaid)
    errors, rvs = [], []
    for write, answer in zip(writes, answers, strict=True):
        result = of_change(answer)  # deletes are sorted alike
        rvs.append(answer.resource_version)
        if result is Outcome.DONE:
            outcome.cache_must_pass(write.resource, answer.resource_version)
        elif not (result is Outcome.GONE and gone_will_do):
            errors.append(_error(verb, write, answer, outcome))
    if errors:
        raise outcome.failure(errors[0])
    return rvs


def _error(verb: str, write: Write, answer: Answer, outcome: TurnOutcome) -> str:
    outcome.heed_throttling(answer)
    kind = KIND if write.resource == RESOURCE else "Pod"
    return f"{verb} {kind} {write.namespace}/{write.name}: {answer.message}"
