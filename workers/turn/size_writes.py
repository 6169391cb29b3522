"""Size writes: what a Deployment's turns announced about the sizes of its ReplicaSets, and what became of it.

Each carries the UID and the resourceVersion of the ReplicaSet that it was decided on. So it stops being open by its
answer, by a newer version in the cache, or by time (D) and then a look. Its entry stays longer: until the status of the
ReplicaSet has observed its last size, for until then its pods may follow any size between the two that are remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from oarlock.broker.expectations import SCALE, Expectations, SizeEntry
from oarlock.broker.values.turns import Change, Entry
from oarlock.broker.versions import newer
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import Outcome, of_change
from oarlock.controllers.deployment.bodies import update_patch
from oarlock.controllers.deployment.plan import SizeWrite, Update
from oarlock.controllers.deployment.sizing.sizes import is_observed
from oarlock.controllers.objects.model import ReplicaSet
from oarlock.workers.turn.steps import Announce, Grant, Read, Reserve, Send, Steps, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

RESOURCE = "replicasets"


class Known(NamedTuple):
    """``writes``: for the decision, by UID. ``open``: the announced version of each write that may still land, by UID.

    ``read``: whether the cache shows all that was seen at the API; if not, nothing is decided in this turn.
    """

    writes: Mapping[str, SizeWrite] = {}
    open: Mapping[str, str] = {}
    read: bool = True


def resolve(
    namespace: str,
    announced: Expectations | None,
    cached: Mapping[str, tuple[str, ReplicaSet]],
    cache_rv: str,
    outcome: TurnOutcome,
) -> Steps[Known]:
    """The size writes that still count. ``cached``: resourceVersion and ReplicaSet by name, from a cache that equals
    ``cache_rv``.
    """
    if announced is None:
        return Known()
    _leave_out_strange(announced, outcome)
    writes: dict[str, SizeWrite] = {}
    still_open: dict[str, SizeEntry] = {}
    read = True
    for entry in announced.scales:
        rv, replicaset = cached.get(_name(entry), ("", None))
        if replicaset is None and entry.open is not None and newer(entry.rv, cache_rv):
            outcome.cache_must_pass(RESOURCE, entry.rv)  # it was created, and sized, a moment ago
            read = False
        elif replicaset is None or replicaset.uid != entry.uid or _ends(entry, rv, replicaset):
            outcome.changes.append(Change.drop(entry.field))
        elif entry.open is not None and not newer(rv, entry.rv):
            still_open[entry.uid] = entry
            writes[entry.uid] = SizeWrite(entry.low, entry.high, open=True)
        else:
            if entry.open is not None:
                outcome.changes.append(Change.set(entry.field, entry.answered_text))
            writes[entry.uid] = SizeWrite(entry.low, entry.high)
    over = [entry for entry in still_open.values() if entry.open is not None and entry.open.over]
    for entry, look in (yield from _looks(namespace, over, outcome)) if over else ():
        del still_open[entry.uid]
        if look.ok and look.uid == entry.uid and not newer(look.resource_version, entry.rv):
            _never_landed(entry, cached[_name(entry)][1], writes, outcome)
        else:
            outcome.changes.append(Change.set(entry.field, entry.answered_text))
            _wait_for(look, outcome)
            read = False
    fields = [entry.field for entry in still_open.values()]
    outcome.open_since_before(announced.said, fields, 0)
    return Known(writes, {uid: entry.rv for uid, entry in still_open.items()}, read)


def _ends(entry: SizeEntry, rv: str, replicaset: ReplicaSet) -> bool:
    """Whether its ReplicaSet, at ``rv`` in the cache, has observed the last size, and no request can change it now."""
    return is_observed(replicaset) and (entry.open is None or newer(rv, entry.rv))


def _leave_out_strange(announced: Expectations, outcome: TurnOutcome) -> None:
    """Drop what no turn over ReplicaSets announces. Nothing else would end it."""
    fields = [field for verb, target in announced.pending_others for field in (verb, f"{verb} {target}")]
    for verb, targets in (
        ("create", announced.creates),
        ("reserved", announced.reserved),
        ("passed", announced.passed),
    ):
        fields += [f"{verb} {target}" for target in targets]
    fields += [each.field for each in announced.deletes]
    fields += [each.field for each in announced.scales if _is_strange(each)]
    for field in fields:
        outcome.changes.append(Change.drop(field))
        outcome.failed("the expectations have an entry that no turn announces: left out")


def _is_strange(entry: SizeEntry) -> bool:
    return not entry.target.startswith(f"{RESOURCE}/") or not entry.uid or (entry.open is not None and not entry.rv)


def _looks(namespace: str, over: Sequence[SizeEntry], outcome: TurnOutcome) -> Steps[list[tuple[SizeEntry, Answer]]]:
    """Look at what D has passed for: no request of it is under way any more. Returns the looks that prove something."""
    answers: list[Answer] = yield Read(RESOURCE, namespace, tuple(_name(entry) for entry in over))
    looks = list(zip(over, answers, strict=True))
    proofs = [(entry, look) for entry, look in looks if _is_proof(look)]
    if len(proofs) < len(looks):
        outcome.retry = True  # nothing learned of the others: they stay open
    return proofs


def _never_landed(entry: SizeEntry, replicaset: ReplicaSet, writes: dict[str, SizeWrite], outcome: TurnOutcome) -> None:
    """What was observed before stays observed, and no event will say so: the entry ends here."""
    if is_observed(replicaset):
        del writes[entry.uid]
        outcome.changes.append(Change.drop(entry.field))
    else:
        writes[entry.uid] = SizeWrite(entry.low, entry.high)
        outcome.changes.append(Change.set(entry.field, entry.answered_text))


def _wait_for(look: Answer, outcome: TurnOutcome) -> None:
    """The cache has to come to what a look showed. What has gone has no version to wait for."""
    if look.ok:
        outcome.cache_must_pass(RESOURCE, look.resource_version)
        outcome.read_again()
    else:
        outcome.retry = True


def _is_proof(look: Answer) -> bool:
    return (look.ok and bool(look.uid)) or (look.code == 404 and look.status is not None)


def _name(entry: SizeEntry) -> str:
    return entry.target.partition("/")[2]


def carry_out(
    owner_uid: str, updates: Sequence[Update], versions: Mapping[str, str], known: Known, outcome: TurnOutcome
) -> Steps[None]:
    """Announce the changes of sizes, send all updates at the same time, enter the answers. ``versions``: by UID."""
    grant: Grant = yield Reserve(len(updates))
    granted = updates[: grant.granted]
    if grant.granted < len(updates):
        outcome.again_in(grant.wait_ms)
    if not granted:
        return
    writes = [_write(update, versions[update.replicaset.uid]) for update in granted]
    entries = [
        Entry(SCALE, write.target, write.uid, write.rv, _remembered(update, write).hint)
        for update, write in zip(granted, writes, strict=True)
        if _changes_spec(update)
    ]
    if entries:
        yield Announce(owner_uid, tuple(entries))
        outcome.announced(entries)
    answers: list[Answer] = yield Send(tuple(writes), prepaid=True)
    conflicts = []
    for update, write, answer in zip(granted, writes, answers, strict=True):
        result = of_change(answer)
        again = known.open.get(write.uid) == write.rv
        if result is Outcome.CONFLICT and _changes_spec(update):
            conflicts.append((update, write, again))
        elif result is Outcome.DONE and answer.resource_version == write.rv:
            _settled(update, write, outcome)  # admission undid it: no event follows
            outcome.failed(f"change of ReplicaSet {write.namespace}/{write.name}: it was left as it was")
        elif result is Outcome.DONE:
            _settled(update, write, outcome)
            outcome.cache_must_pass(RESOURCE, answer.resource_version)
            outcome.followed = True
            if update.event is not None:
                outcome.events.append(update.event)
        else:
            _not_done(update, write, answer, result, again, outcome)
    if conflicts:
        names = tuple(write.name for _, write, _ in conflicts)
        looks: list[Answer] = yield Read(RESOURCE, conflicts[0][1].namespace, names)
        for (update, write, again), look in zip(conflicts, looks, strict=True):
            _sort_conflict(update, write, look, again, outcome)


def _write(update: Update, rv: str) -> Write:
    target = update.replicaset
    return Write("patch", RESOURCE, target.namespace, target.name, update_patch(update, target.uid, rv), target.uid, rv)


def _remembered(update: Update, write: Write) -> SizeEntry:
    return SizeEntry(write.target, write.uid, write.rv, update.low, update.high)


def _changes_spec(update: Update) -> bool:
    """Whether its generation rises, so that there is something to observe."""
    return update.replicas != update.replicaset.replicas or update.min_ready_seconds is not None


def _settled(update: Update, write: Write, outcome: TurnOutcome) -> None:
    """No request of it can land any more; what it may have done is remembered until it is observed."""
    if not _changes_spec(update):
        return
    entry = _remembered(update, write)
    outcome.open.discard(entry.field)
    outcome.changes.append(Change.set(entry.field, entry.answered_text))


def _not_done(update: Update, write: Write, answer: Answer, result: Outcome, again: bool, outcome: TurnOutcome) -> None:
    """``again``: the same was sent before, so a refusal of this request says nothing about the earlier one."""
    outcome.attempted = outcome.attempted or result.was_sent
    outcome.heed_throttling(answer)
    if result is Outcome.UNKNOWN:
        outcome.proves_nothing(write, answer)
    elif result is Outcome.GONE or not again:
        _settled(update, write, outcome)
    if result in (Outcome.GONE, Outcome.TOO_LATE, Outcome.CONFLICT):
        outcome.retry = True
    else:
        outcome.failed(f"size of ReplicaSet {write.namespace}/{write.name}: {answer.message}")


def _sort_conflict(update: Update, write: Write, look: Answer, again: bool, outcome: TurnOutcome) -> None:
    """A look was made after the conflict. A 409 may come from an admission plugin, too: then the ReplicaSet is
    unchanged, and the earlier of two requests may still land.
    """
    outcome.retry = True
    if not _is_proof(look):
        return
    changed = not look.ok or look.uid != write.uid or newer(look.resource_version, write.rv)
    if changed or not again:
        _settled(update, write, outcome)
    if changed:
        _wait_for(look, outcome)
