"""Expectations: the writes that earlier turns announced and nobody has answered. They are held against the cache and,
once their time is over, ended by a look at the API.

An open write stops nothing. The decision counts it both ways: as what may have come, and as what may have gone
(``controllers.plan.Unanswered``). It stops being open

- by its answer;
- by the cache: the name is taken; the pod is terminating, has gone or has changed;
- by time and then a look. An absence alone proves nothing while a request may be under way. After D none is.

A create that ends in the first two ways leaves its name reserved until the third: an earlier request for the same name
may still land once the pod under it has gone.

An announcement says what was announced, not for whose pods. So a turn takes from it only which names and UIDs are
uncertain. What is sent again is what the decision asks for, of the owner's own pods and slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from oarlock.broker.expectations import Expectations, ExpectedDelete, OpenWrite
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import Change
from oarlock.broker.versions import newer
from oarlock.cluster.answer import Answer
from oarlock.controllers.objects import wire
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.plan import NOTHING_UNANSWERED, Unanswered
from oarlock.workers.turn.acting import pod_of
from oarlock.workers.turn.looking import list_pods
from oarlock.workers.turn.steps import ListLive, Read, Steps
from oarlock.workers.turn.turn_outcome import PASSED_MAX, TurnOutcome

T = TypeVar("T")

PAUSES_MS = (0, 500, 1_000, 2_000, 4_000)
"""Between a send without an answer and the next one. After the last one there is silence until a look ends it."""
TRIES_MAX = len(PAUSES_MS) + 1
PASSED_MS = 300_000
"""How long other names are taken in place of one that was sent too often."""
REST_MS = 2_500
"""How long the name of a failed daemon pod is not used again once the pod has gone."""
REST_MOST_MS = 60_000
"""A longer one is of a clock that has jumped back since."""
READS_MAX = 20
"""For more names than these, one list is read instead, where requests are limited."""
READS_A_TURN = 500
"""Where nothing limits them, so many names are read, and the others by the next turns. A read costs as much in any
namespace, a list as much as all in it."""


class OpenWrites(NamedTuple):
    """``unanswered``: for the decision. ``rvs``: the resourceVersion that each delete was announced with, by UID.

    ``read``: whether the cache has what was seen at the API; else nothing is decided about pods in this turn.
    """

    unanswered: Unanswered = NOTHING_UNANSWERED
    rvs: Mapping[str, str] = {}
    read: bool = True


NONE = OpenWrites()


def resolve(
    owner: Claimer,
    claim: Claim,
    pods: Sequence[Pod],
    rvs: Sequence[str],
    pods_rv: str,
    outcome: TurnOutcome,
    limited: bool,
) -> Steps[OpenWrites]:
    """The writes that are still open. ``pods`` and their ``rvs``: those of the claim, from a cache that equals
    ``pods_rv``. ``limited``: whether anything limits requests.
    """
    if claim.expectations is None:
        return NONE
    known = _Known(claim.expectations, claim, pods, rvs, pods_rv, outcome)
    known.leave_out_strange(owner)
    known.compare_with_cache()
    yield from known.look(owner, limited)
    return known.told()


class LivePod(NamedTuple):
    """A pod as the API shows it."""

    rv: str
    pod: Pod


class _Known:
    """The open writes of one owner: creates by name, deletes by UID."""

    def __init__(
        self,
        announced: Expectations,
        claim: Claim,
        pods: Sequence[Pod],
        rvs: Sequence[str],
        pods_rv: str,
        outcome: TurnOutcome,
    ) -> None:
        self._announced, self._now_ms, self._outcome = announced, claim.now_ms, outcome
        self._read_ms = claim.now_ms + claim.late_ms
        self._pods, self._rvs, self._pods_rv = pods, rvs, pods_rv
        self._creates, self._reserved = _by_name(announced.creates), _by_name(announced.reserved)
        self._passed = _by_name(announced.passed)
        self._deletes = {each.uid: each for each in announced.deletes if not each.answered and _pod_name(each.target)}
        self._read = True

    def leave_out_strange(self, owner: Claimer) -> None:
        """Drop entries that no turn has announced: of another verb, or of no pod. Nothing else would end them."""
        announced = self._announced
        fields = [field for verb, target in announced.pending_others for field in (verb, f"{verb} {target}")]
        named: dict[str, Iterable[str]] = {
            "create": announced.creates,
            "reserved": announced.reserved,
            "passed": announced.passed,
        }
        fields += [f"{verb} {target}" for verb, targets in named.items() for target in targets if not _pod_name(target)]
        fields += [each.field for each in announced.deletes if not each.answered and not _pod_name(each.target)]
        fields += [each.field for each in announced.scales]
        for field in fields:
            self._drop(field)
            self._outcome.failed(
                f"the expectations of {owner.name} have an entry that none of ours announces: left out"
            )

    def compare_with_cache(self) -> None:
        """A create whose name is taken has its answer. So has a delete whose pod has gone, is terminating or has
        changed.
        """
        if self._creates:
            for name in {pod.name for pod in self._pods} & self._creates.keys():
                del self._creates[name]
                self._drop(f"create pods/{name}")
        if not self._deletes:
            return
        present = {pod.uid: (pod, rv) for pod, rv in zip(self._pods, self._rvs, strict=True)}
        for uid, each in list(self._deletes.items()):
            pod, rv = present.get(uid, (None, ""))
            if pod is None:
                is_open = newer(each.rv, self._pods_rv)  # the cache has not come to this pod yet
            else:
                is_open = not pod.deleting_ms and not newer(rv, each.rv)  # after a change its precondition fails
            if not is_open:
                del self._deletes[uid]
                self._drop(each.field)

    def look(self, owner: Claimer, limited: bool) -> Steps[None]:
        """End what D has passed for: no request of it is under way any more."""
        names = {name for name, opened in self._creates.items() if opened.over}
        names |= {name for name, over in self._reserved.items() if over and name not in self._creates}
        deletes = [each for each in self._deletes.values() if each.open.over]
        wanted = sorted(names.union(_pod_name(each.target) for each in deletes))
        if not wanted:
            return
        if not limited:
            wanted = wanted[:READS_A_TURN]  # what is open and over brings the key back by itself
        found = yield from _live_pods(owner, wanted, limited, self._outcome)
        for name in sorted(names & found.keys()):
            self._end_create(name, found[name])
        for each in deletes:
            if _pod_name(each.target) in found:
                self._end_delete(each, found[_pod_name(each.target)])

    def _end_create(self, name: str, live: LivePod | None) -> None:
        opened = self._creates.pop(name, None)
        self._reserved.pop(name, None)
        self._drop(f"create pods/{name}")
        self._drop(f"reserved pods/{name}")
        if live is not None:
            self._wait_for(live.rv)
        elif opened is not None and opened.tries >= TRIES_MAX and len(self._passed) < PASSED_MAX:
            until_ms = self._now_ms + PASSED_MS
            self._passed[name] = until_ms
            self._outcome.changes.append(Change.set(f"passed pods/{name}", f"until_ms={until_ms}"))

    def _end_delete(self, each: ExpectedDelete, live: LivePod | None) -> None:
        """A delete that did nothing is forgotten, and decided anew if it is still wanted."""
        del self._deletes[each.uid]
        if live is None or live.pod.uid != each.uid or live.pod.deleting_ms:
            self._outcome.changes.append(Change.set(each.field, f"answered uid={each.uid} rv={each.rv}"))
            self._read = False  # the cache shows the pod still
        else:
            self._drop(each.field)
            self._wait_for(live.rv)

    def _wait_for(self, rv: str) -> None:
        if newer(rv, self._pods_rv):
            self._outcome.cache_must_pass("pods", rv)
            self._read = False

    def told(self) -> OpenWrites:
        """What the decision is to know. The key comes back for what time alone changes."""
        now_ms, outcome = self._now_ms, self._outcome
        if not self._read:
            outcome.read_again()
        for name, until_ms in list(self._passed.items()):
            if now_ms < until_ms <= now_ms + PASSED_MS:
                outcome.again_in(until_ms - now_ms)
            else:
                del self._passed[name]
                self._drop(f"passed pods/{name}")
        fields = [f"create pods/{name}" for name in self._creates] + [each.field for each in self._deletes.values()]
        outcome.open_since_before(self._announced.said, fields, len(self._passed))
        sent = {**self._creates, **{uid: each.open for uid, each in self._deletes.items()}}
        unanswered = Unanswered(
            creates=frozenset([*self._creates, *self._reserved]),
            deletes=frozenset(self._deletes),
            leaving=frozenset(each.uid for each in self._announced.deletes),
            quiet=frozenset(_quiet(sent, now_ms, outcome)),
            passed=frozenset(self._passed),
            resting=frozenset(_resting(self._announced, self._pods, now_ms, self._read_ms, outcome)),
            nodes={_pod_name(target): hint.removeprefix("node=") for target, hint in self._announced.hints.items()},
        )
        return OpenWrites(unanswered, {uid: each.rv for uid, each in self._deletes.items()}, self._read)

    def _drop(self, field: str) -> None:
        self._outcome.changes.append(Change.drop(field))


def _live_pods(
    owner: Claimer, names: Sequence[str], limited: bool, outcome: TurnOutcome
) -> Steps[dict[str, LivePod | None]]:
    """For each name that could be read, its pod; None if there is none.

    Under a limit a list stands for many reads. Nearly all of the names are borne by pods that the owner selects: these
    are listed first. A namespace may have far more pods, and is listed only for many names that these do not bear.
    """
    found: dict[str, LivePod | None] = {}
    live, whole = list_pods(owner), ListLive("pods", owner.namespace)
    if limited and len(names) > READS_MAX and live != whole:
        found |= yield from _listed(live, names)
    rest = [name for name in names if name not in found]
    if limited and len(rest) > READS_MAX:
        return {**dict.fromkeys(rest), **found, **(yield from _listed(whole, rest))}
    if not rest:
        return found
    answers: list[Answer] = yield Read("pods", owner.namespace, tuple(rest))
    for name, answer in zip(rest, answers, strict=True):
        pod = pod_of(answer)
        if pod is not None:
            found[name] = LivePod(answer.resource_version, pod)
        elif answer.code == 404 and answer.status is not None:
            found[name] = None
        else:
            outcome.retry = True  # nothing learned: the write stays open
    return found


def _listed(live: ListLive, names: Sequence[str]) -> Steps[dict[str, LivePod | None]]:
    """By name, the pods of these names that a list has."""
    wanted = set(names)
    listed = yield live
    pods = map(wire.pod_from_json, listed.items)
    return {pod.name: LivePod(rv, pod) for rv, pod in pods if pod.name in wanted}


def _quiet(sent: Mapping[str, OpenWrite], now_ms: int, outcome: TurnOutcome) -> list[str]:
    """What was sent too often, or too recently. The key comes back for the latter."""
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


def _resting(
    announced: Expectations, pods: Sequence[Pod], now_ms: int, read_ms: int, outcome: TurnOutcome
) -> list[str]:
    """Names of failed pods that are still there, or went a moment ago. ``read_ms``: when the pods were read, at the
    latest: until then a pod that is not among them may have been there.
    """
    present = {pod.uid for pod in pods} if announced.rests else set()
    names = []
    for target, text in announced.rests.items():
        uid, until = text.removeprefix("uid="), text.removeprefix("until_ms=")
        if text.startswith("uid=") and uid not in present:
            until = str(read_ms + REST_MS)
            outcome.changes.append(Change.set(f"rest {target}", f"until_ms={until}"))
        if text.startswith("uid=") and uid in present:
            names.append(target.partition("/")[2])
        elif until.isascii() and until.isdigit() and len(until) < 18 and now_ms < int(until) <= now_ms + REST_MOST_MS:
            names.append(target.partition("/")[2])
            outcome.due_in(int(until) - now_ms)
        else:
            outcome.changes.append(Change.drop(f"rest {target}"))
    return names


def _by_name(targets: Mapping[str, T]) -> dict[str, T]:
    """Those of pods, by name."""
    return {name: value for target, value in targets.items() if (name := _pod_name(target))}


def _pod_name(target: str) -> str:
    resource, _, name = target.partition("/")
    return name if resource == "pods" and "/" not in name else ""
