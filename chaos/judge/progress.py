"""Progress while faults last: an owner for which one name is refused goes on with all other names.

An owner is left alone from its last *disturbance* on: a change of what it asks for, a pod that others took or gave, an
end of a time in which the whole fleet may stand still. So long after it (``Facts.progress_s``)

- its status tells of the generation it was asked for (D later where pods are counted: a size is observed once no write
  without an answer can still land beside it),
- it has at most as many active pods too many as deletes of its pods are refused by name,

and D later, for a create that stays unanswered is waited for so long,

- it has at most as many too few (a DaemonSet: nodes without one) as creates of its pods are refused by name. A strict
  owner has to delete a finished pod before it makes another, so of it refused deletes count here as well.

Of a Deployment only the first is judged: its pods are those of its ReplicaSets, and where one of these may lack a pod
the rollout may rightly wait.

Refused by name are the writes that did not take effect, and are answered 500 whenever they are sent (``BY_NAME``).
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from oarlock.chaos.judge.evidence.evidence import Blow, Facts, Request, Violation
from oarlock.chaos.judge.evidence.placing import place
from oarlock.chaos.judge.evidence.sightings import (
    DaemonSetSeen,
    DeploymentSeen,
    NodeSeen,
    OwnerSeen,
    PodSeen,
    Seen,
    note,
)
from oarlock.chaos.judge.owners import delete_at
from oarlock.chaos.judge.writes import Commit

BY_NAME = "by name"
"""Ends the audit log's word for such a fault."""


@dataclass(slots=True)
class _Owner:
    """``since_s``: when it was last disturbed; ``told_s``: for which disturbance it was found wanting."""

    seen: OwnerSeen | DaemonSetSeen | DeploymentSeen
    since_s: float
    active: dict[str, PodSeen] = field(default_factory=dict)
    checked_s: float = -math.inf
    told_s: float = -math.inf


@dataclass
class Progress:
    """``read`` a history once. ``checks``: how often an owner had been left alone for long enough to be judged."""

    facts: Facts
    open_spans: Sequence[tuple[float, float]]
    ours: Mapping[int, Commit]
    """Revision -> the write of ours that made it."""
    violations: list[Violation] = field(default_factory=list)
    checks: int = 0
    checks_refused: int = 0
    """How many of these concerned an owner with a refused name."""

    def __post_init__(self) -> None:
        self._owners: dict[str, _Owner] = {}
        self._pods: dict[str, PodSeen] = {}
        self._nodes: dict[str, NodeSeen] = {}
        self._still: list[tuple[float, float]] = []
        self._refused: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)

    def read(self, history: Sequence[Seen], requests: Iterable[Request], blows: Iterable[Blow]) -> Progress:
        """Read all evidence, the history sorted by revision."""
        if not self.facts.progress_s:
            return self
        owner_of = {each.uid: each.owner for each in history if isinstance(each, PodSeen) and each.owner}
        for request in sorted(requests, key=lambda each: each.received_s):
            if BY_NAME in request.fault and request.resource == "pods" and not request.committed:
                owner = request.owner or owner_of.get(request.asked_uid, "")
                self._refused[request.verb, owner].append((request.received_s, request.name))
        # Where nobody saw when the next epoch was opened: it is, a drain after the end and what it takes to list.
        more_s = self.facts.drain_s + self.facts.progress_s if self.facts.api_alone else 0.0
        whole = [(blow.at_s, blow.until_s + more_s) for blow in blows if blow.whole]
        opened = sorted(self.open_spans)
        ends = [self.facts.faults_ended_s - 1e6, *(end for _, end in opened)]
        begins = [*(begin for begin, _ in opened), math.inf]
        closed = list(zip(ends, begins, strict=True)) if opened else []
        self._still = sorted(span for span in [*whole, *closed] if span[0] < span[1])
        for seen in history:
            if seen.at_s >= self.facts.faults_ended_s:
                break
            self._take(seen)
        for each in self._owners.values():
            self._judge(each, self.facts.faults_ended_s)
        return self

    # -- what was seen

    def _take(self, seen: Seen) -> None:
        match seen:
            case OwnerSeen() | DaemonSetSeen() | DeploymentSeen():
                self._take_owner(seen)
            case PodSeen():
                self._take_pod(seen)
            case NodeSeen():
                before = self._nodes.get(seen.name)
                if before is None or seen.gone or (before.labels, before.taints) != (seen.labels, seen.taints):
                    for each in self._owners.values():
                        if isinstance(each.seen, DaemonSetSeen):
                            self._disturb(each, seen.at_s)
                note(self._nodes, seen.name, seen)

    def _take_owner(self, seen: OwnerSeen | DaemonSetSeen | DeploymentSeen) -> None:
        owner = self._owners.get(seen.uid)
        if owner is None:
            owner = self._owners[seen.uid] = _Owner(seen, seen.at_s)
            owner.active = {pod.uid: pod for pod in self._pods.values() if pod.owner == seen.uid and pod.active}
        self._judge(owner, seen.at_s)
        if (owner.seen.generation, owner.seen.deleting) != (seen.generation, seen.deleting):
            owner.since_s = seen.at_s
        owner.seen = seen
        if seen.gone:
            del self._owners[seen.uid]

    def _take_pod(self, seen: PodSeen) -> None:
        before = note(self._pods, seen.uid, seen)
        for uid in dict.fromkeys(each.owner for each in (before, seen) if each is not None and each.owner):
            owner = self._owners.get(uid)
            if owner is None:
                continue
            active = seen.active and seen.owner == uid
            if active != (seen.uid in owner.active):
                if self._by_us(owner, seen, active):
                    self._judge(owner, seen.at_s)
                else:
                    self._disturb(owner, seen.at_s)
            if active:
                owner.active[seen.uid] = seen
            else:
                owner.active.pop(seen.uid, None)

    def _by_us(self, owner: _Owner, seen: PodSeen, active: bool) -> bool:
        """Whether a write of ours made or ended it. What ends a daemon pod leaves its node bare, whoever did it."""
        if active:
            return seen.rv in self.ours and self.ours[seen.rv].uid == seen.uid
        return isinstance(owner.seen, OwnerSeen) and delete_at(self.ours, seen) is not None

    def _disturb(self, owner: _Owner, at_s: float) -> None:
        self._judge(owner, at_s)
        owner.since_s = at_s

    # -- judged

    def _judge(self, owner: _Owner, at_s: float) -> None:
        """How it has stood since its last event, up to now."""
        seen, limit_s = owner.seen, self.facts.progress_s
        if seen.deleting or seen.gone or not self._left_alone(owner.since_s, at_s, limit_s):
            return
        creates, deletes = (self._names(verb, seen.uid, at_s) for verb in ("create", "delete"))
        if owner.checked_s != owner.since_s:
            owner.checked_s = owner.since_s
            self.checks += 1
            self.checks_refused += bool(creates or deletes)
        late = self._left_alone(owner.since_s, at_s, limit_s + self.facts.drain_s)
        if seen.observed != seen.generation and (late or not isinstance(seen, OwnerSeen)):
            self._break(owner, at_s, f"its status is of generation {seen.observed}, not {seen.generation}")
        if isinstance(seen, DeploymentSeen):
            return
        if isinstance(seen, DaemonSetSeen):
            self._judge_nodes(owner, seen, at_s, creates) if late else None
            return
        if seen.strict:
            creates = sorted({*creates, *deletes})
        active = len(owner.active)
        if active > seen.replicas + len(deletes):
            text = f"{active} active pods, {seen.replicas} wanted, and deletes of {_told(deletes)} are refused"
            self._break(owner, at_s, text)
        elif late and active < seen.replicas - len(creates):
            text = f"{active} active pods, {seen.replicas} wanted, and creates of {_told(creates)} are refused"
            self._break(owner, at_s, text)

    def _judge_nodes(self, owner: _Owner, seen: DaemonSetSeen, at_s: float, creates: Sequence[str]) -> None:
        covered = {pod.target for pod in owner.active.values()}
        bare = [node.name for node in self._nodes.values() if place(seen, node).runs and node.name not in covered]
        if len(bare) > len(creates):
            text = f"no pod on {_told(bare)}, and creates of {_told(creates)} are refused"
            self._break(owner, at_s, text)

    def _left_alone(self, since_s: float, at_s: float, limit_s: float) -> bool:
        """Whether there was so much time in one piece, up to now, in which the fleet could work on it."""
        from_s = since_s
        for begin_s, end_s in self._still:
            if begin_s < from_s + limit_s and end_s > from_s:
                from_s = end_s
        return from_s + limit_s < at_s

    def _names(self, verb: str, uid: str, at_s: float) -> list[str]:
        """The names that were refused lately: for what is silent for D after its last try counts as refused."""
        found = self._refused.get((verb, uid), [])
        from_s = at_s - self.facts.progress_s - 2 * self.facts.drain_s
        at = bisect.bisect_left(found, (from_s, ""))
        return sorted({name for received_s, name in found[at:] if received_s <= at_s})

    def _break(self, owner: _Owner, at_s: float, text: str) -> None:
        if owner.told_s == owner.since_s:
            return
        owner.told_s = owner.since_s
        told = f"left alone for {at_s - owner.since_s:.1f} s while faults last: {text}"
        self.violations.append(Violation("stalled_owner", owner.seen.task, at_s, owner.seen.rv, told))


def _told(names: Sequence[str]) -> str:
    return f"{', '.join(names[:4])}{' ...' if len(names) > 4 else ''}" if names else "none"
