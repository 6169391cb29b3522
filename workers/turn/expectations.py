"""What earlier turns announced and nobody has answered: read from the record, held against the cache and, once its time
is over, settled by a look at the API.

An open write stops nothing. The decision counts with both ends: what may have come and what may have gone
(``controllers.plan.Unanswered``). It stops being open

- by its answer;
- by the cache: a name that is borne, a pod that is ending, has gone or has changed;
- by time and then a look. An absence alone proves nothing while a request may be under way; after D none is.

A create that ends in the first two ways leaves its name reserved until the third: an earlier request for the same name
may still land once the bearer has gone.

A record says what was announced; whose it is, it does not. So nothing is taken from it but which names and UIDs are
uncertain: what is sent again is what the decision asks for, of the owner's own pods and slots.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

from oarlock.broker.expectations import Expectations, ExpectedDelete, OpenWrite
from oarlock.broker.values import Change, Claim
from oarlock.broker.versions import newer
from oarlock.cluster.answer import Answer
from oarlock.controllers.objects import wire
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.plan import NOTHING_UNANSWERED, Unanswered
from oarlock.workers.turn.acting import pod_of
from oarlock.workers.turn.steps import ListLive, Read, Step
from oarlock.workers.turn.turn_outcome import PASSED_MAX, TurnOutcome

PAUSES_MS = (0, 500, 1_000, 2_000, 4_000)
"""Between a send without an answer and the next one. After the last there is silence until a look settles it."""
TRIES_MAX = len(PAUSES_MS) + 1
PASSED_MS = 300_000
"""How long other names are taken in place of one that was sent too often."""
REST_MS = 2_500
"""How long the name of a failed daemon pod is not used again once the pod has gone."""
READS_MAX = 20
"""Names above which one list of the namespace is read instead."""


class OpenWrites(NamedTuple):
    """``unanswered``: for the decision. ``rvs``: the resourceVersion that each delete by UID was announced with.

    ``read``: whether the cache has what was seen at the API; else nothing is decided about pods in this turn.
    """

    unanswered: Unanswered = NOTHING_UNANSWERED
    rvs: Mapping[str, str] = {}
    read: bool = True


NONE = OpenWrites()


def resolve(
    owner: Claimer, claim: Claim, pods: Sequence[Pod], pods_rv: str, outcome: TurnOutcome
) -> Generator[Step, Any, OpenWrites]:
    """What is open still. ``pods``: those of the claim, from a cache that equals ``pods_rv``."""
    if claim.expectations is None:
        return NONE
    known = _Known(claim.expectations, claim, pods, pods_rv, outcome)
    known.leave_out_strange(owner)
    known.hear_the_cache()
    yield from known.look(owner)
    return known.told()


class _Known:
    """The open writes of one record: creates by name, deletes by UID."""

    def __init__(self, record: Expectations, claim: Claim, pods: Sequence[Pod], pods_rv: str, outcome: TurnOutcome) -> None:
        self._record, self._claim, self._pods, self._pods_rv, self._outcome = record, claim, pods, pods_rv, outcome
        self._creates = {_pod_name(target): opened for target, opened in record.creates.items() if _pod_name(target)}
        self._reserved = {_pod_name(target): over for target, over in record.reserved.items() if _pod_name(target)}
        self._deletes = {each.uid: each for each in record.deletes if not each.answered and _pod_name(each.target)}
        self._passed = {_pod_name(target): until_ms for target, until_ms in record.passed.items() if _pod_name(target)}
        self._read = True

    def leave_out_strange(self, owner: Claimer) -> None:
        """Entries that no turn has announced: of another verb, or of no pod. Nothing else would end them."""
        record, outcome = self._record, self._outcome
        fields = [field for verb, target in record.pending_others for field in (verb, f"{verb} {target}")]
        fields += [f"create {target}" for target in record.creates if not _pod_name(target)]
        fields += [f"reserved {target}" for target in record.reserved if not _pod_name(target)]
        fields += [f"passed {target}" for target in record.passed if not _pod_name(target)]
        fields += [each.field for each in record.deletes if not each.answered and not _pod_name(each.target)]
        for field in fields:
            outcome.changes.append(Change.drop(field))
            outcome.failed(f"the record of {owner.name} has an entry that none of ours announces: left out")

    def hear_the_cache(self) -> None:
        """A name that is borne, a pod that has gone, is ending or has changed: these writes have their answer."""
        if self._creates:
            for name in {pod.name for pod in self._pods} & self._creates.keys():
                del self._creates[name]
                self._drop(f"create pods/{name}")
        if not self._deletes:
            return
        present = {pod.uid: (pod, cached.rv) for pod, cached in zip(self._pods, self._claim.children, strict=True)}
        for uid, each in list(self._deletes.items()):
            pod, rv = present.get(uid, (None, ""))
            if pod is None:
                is_open = newer(each.rv, self._pods_rv)  # the cache has not come to this pod yet
            else:
                is_open = not pod.deleting_ms and not newer(rv, each.rv)  # after a change its precondition fails
            if not is_open:
                del self._deletes[uid]
                self._drop(each.field)

    def look(self, owner: Claimer) -> Generator[Step, Any, None]:
        """Settle what D has passed for: nothing of it is under way any more."""
        names = {name for name, opened in self._creates.items() if opened.over}
        names |= {name for name, over in self._reserved.items() if over and name not in self._creates}
        deletes = [each for each in self._deletes.values() if each.open.over]
        wanted = sorted(names.union(_pod_name(each.target) for each in deletes))
        if not wanted:
            return
        found = yield from _bearers(owner, wanted, self._outcome)
        for name in sorted(names & found.keys()):
            self._settle_name(name, found[name])
        for each in deletes:
            if _pod_name(each.target) in found:
                self._settle_delete(each, found[_pod_name(each.target)])

    def _settle_name(self, name: str, bearer: Bearer | None) -> None:
        opened = self._creates.pop(name, None)
        self._reserved.pop(name, None)
        self._drop(f"create pods/{name}")
        self._drop(f"reserved pods/{name}")
        if bearer is not None:
            self._wait_for(bearer.rv)
        elif opened is not None and opened.tries >= TRIES_MAX and len(self._passed) < PASSED_MAX:
            until_ms = self._claim.now_ms + PASSED_MS
            self._passed[name] = until_ms
            self._outcome.changes.append(Change.set(f"passed pods/{name}", f"until_ms={until_ms}"))

    def _settle_delete(self, each: ExpectedDelete, bearer: Bearer | None) -> None:
        """One that did nothing is forgotten, and decided anew if it is still wanted."""
        del self._deletes[each.uid]
        if bearer is None or bearer.pod.uid != each.uid or bearer.pod.deleting_ms:
            self._outcome.changes.append(Change.set(each.field, f"answered uid={each.uid} rv={each.rv}"))
            self._read = False  # the cache shows the pod still
        else:
            self._drop(each.field)
            self._wait_for(bearer.rv)

    def _wait_for(self, rv: str) -> None:
        if newer(rv, self._pods_rv):
            self._outcome.need("pods", rv)
            self._read = False

    def told(self) -> OpenWrites:
        """What the decision is to know; and when to come back for what time alone changes."""
        now_ms, outcome = self._claim.now_ms, self._outcome
        for name, until_ms in list(self._passed.items()):
            if now_ms < until_ms <= now_ms + PASSED_MS:
                outcome.again_in(until_ms - now_ms)
            else:
                del self._passed[name]
                self._drop(f"passed pods/{name}")
        fields = [f"create pods/{name}" for name in self._creates] + [each.field for each in self._deletes.values()]
        outcome.open_since_before(self._record.said, fields, len(self._passed))
        sent = {**self._creates, **{uid: each.open for uid, each in self._deletes.items()}}
        unanswered = Unanswered(
            creates=frozenset([*self._creates, *self._reserved]),
            deletes=frozenset(self._deletes),
            quiet=frozenset(_quiet(sent, now_ms, outcome)),
            passed=frozenset(self._passed),
            resting=frozenset(_resting(self._record, self._pods, now_ms, outcome)),
            nodes={_pod_name(target): hint.removeprefix("node=") for target, hint in self._record.hints.items()},
        )
        return OpenWrites(unanswered, {uid: each.rv for uid, each in self._deletes.items()}, self._read)

    def _drop(self, field: str) -> None:
        self._outcome.changes.append(Change.drop(field))


class Bearer(NamedTuple):
    """Who bears a name, as the API shows it."""

    rv: str
    pod: Pod


def _bearers(
    owner: Claimer, names: Sequence[str], outcome: TurnOutcome
) -> Generator[Step, Any, dict[str, Bearer | None]]:
    """For each name that could be read, who bears it; None where nobody does."""
    if len(names) > READS_MAX:
        listed = yield ListLive("pods", owner.namespace)
        present = {pod.name: Bearer(rv, pod) for rv, pod in map(wire.pod_from_json, listed.items)}
        return {name: present.get(name) for name in names}
    found: dict[str, Bearer | None] = {}
    answers: list[Answer] = yield Read("pods", owner.namespace, tuple(names))
    for name, answer in zip(names, answers, strict=True):
        pod = pod_of(answer)
        if pod is not None:
            found[name] = Bearer(answer.resource_version, pod)
        elif answer.code == 404 and answer.status is not None:
            found[name] = None
        else:
            outcome.retry = True  # nothing learned: it stays open
    return found


def _quiet(sent: Mapping[str, OpenWrite], now_ms: int, outcome: TurnOutcome) -> list[str]:
    """What was sent too often, or too short a time ago. The key comes back for the latter."""
    quiet = []
    for name, opened in sent.items():
        if opened.tries >= TRIES_MAX or opened.over:
            quiet.append(name)
            continue
        pause_ms = opened.sent_ms + PAUSES_MS[opened.tries - 1] - now_ms
        if 0 < pause_ms <= PAUSES_MS[-1]:
            quiet.append(name)
            outcome.again_in(pause_ms)
    return quiet


def _resting(record: Expectations, pods: Sequence[Pod], now_ms: int, outcome: TurnOutcome) -> list[str]:
    """Names of failed pods that are there still, or have gone a moment ago."""
    present = {pod.uid for pod in pods} if record.rests else set()
    names = []
    for target, text in record.rests.items():
        uid, until = text.removeprefix("uid="), text.removeprefix("until_ms=")
        if text.startswith("uid=") and uid not in present:
            until = str(now_ms + REST_MS)
            outcome.changes.append(Change.set(f"rest {target}", f"until_ms={until}"))
        if text.startswith("uid=") and uid in present:
            names.append(target.partition("/")[2])
        elif until.isascii() and until.isdigit() and len(until) < 18 and now_ms < int(until) <= now_ms + REST_MS:
            names.append(target.partition("/")[2])
            outcome.due_in(int(until) - now_ms)
        else:
            outcome.changes.append(Change.drop(f"rest {target}"))
    return names


def _pod_name(target: str) -> str:
    resource, _, name = target.partition("/")
    return name if resource == "pods" and "/" not in name else ""
