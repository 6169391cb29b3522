"""The pass over the watch history, in revision order: pods of ReplicaSets and ReplicationControllers, by number.

An owner is *at rest* when it has as many active pods as it asks for and none that is being deleted, when its status
says that its latest wish was acted on, and when no write of ours that would still take effect had been announced by
then. What is judged is always judged since the last rest:

- after a create of ours, active pods without those that others (or an adoption) added: at most the largest wish;
- a strict owner: the same for all pods that exist;
- after a delete of ours, active pods: at least the smallest wish since the owner version that the claim had read whose
  turn sent it, less the pods lost to others since what it had read of pods. Where no trace of Redis tells which that
  is, since D before the delete came.

While a second fleet writes as well, creates for owners that are not strict and all deletes are not judged, what either
fleet does counts as done by others, and nobody is at rest: what that fleet had announced by then is not known.
DaemonSets have a pass of their own (``daemons``).
"""

from __future__ import annotations

import bisect
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from oarlock.chaos.judge.evidence.changes import RESOURCE_OF_QUEUE
from oarlock.chaos.judge.evidence.evidence import Facts, Request, Violation
from oarlock.chaos.judge.evidence.sightings import DaemonSetSeen, OwnerSeen, PodSeen, Seen
from oarlock.chaos.judge.writes import Commit

REVISIONS_OF_A_DELETE = 3
"""A delete marks the object and may then remove it: it is known by its last revision, and acts at its first."""


def delete_at(by_rv: Mapping[int, Commit], seen: PodSeen) -> Commit | None:
    """The delete of ours that ended this pod; None where it ended otherwise, such as by failing."""
    if not (seen.deleting or seen.gone):
        return None
    for rv in range(seen.rv, seen.rv + REVISIONS_OF_A_DELETE):
        commit = by_rv.get(rv)
        if commit is not None and commit.verb == "delete" and commit.uid == seen.uid:
            return commit
    return None


class _At(NamedTuple):
    """Something that happened at a time and a revision. ``replicas``: of a wish."""

    at_s: float
    rv: int
    replicas: int = 0


@dataclass(slots=True)
class _Owner:
    """One owner, by uid. ``wishes``: since the last rest; ``losses``: all, for a turn may have read what was before it;
    the others: uids of pods.

    ``existing``: all it controls; ``around``: those of them that hinder a rest unless they are active.
    """

    seen: OwnerSeen
    wishes: list[_At]
    most: int
    active: set[str] = field(default_factory=set)
    existing: set[str] = field(default_factory=set)
    around: set[str] = field(default_factory=set)
    ready: set[str] = field(default_factory=set)
    added: set[str] = field(default_factory=set)
    losses: list[_At] = field(default_factory=list)
    settled_s: float = math.inf
    """Since when all is as it should be, status and all."""
    rests: int = 0


class Outstanding:
    """For one owner: is any write that takes effect after a revision announced before a time?"""

    def __init__(self, commits: Sequence[Commit]) -> None:
        ordered = sorted(commits, key=lambda each: each.rv)
        self._rvs = [each.rv for each in ordered]
        self._first_s = [math.inf] * (len(ordered) + 1)
        for at in range(len(ordered) - 1, -1, -1):
            self._first_s[at] = min(self._first_s[at + 1], ordered[at].recorded_s)

    def after(self, rv: int, at_s: float) -> bool:
        return self._first_s[bisect.bisect_right(self._rvs, rv)] <= at_s


@dataclass
class Owners:
    """Fed the history once; ``finish`` says who never came to rest."""

    by_rv: dict[int, Commit]
    facts: Facts
    second_creates: Set[int] = frozenset()
    """Revisions at which a second fleet created a pod."""
    violations: list[Violation] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    creates: int = 0
    deletes: int = 0
    rests: int = 0
    of_queue: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(queue, "creates", "deletes" or "rests") -> how many."""

    def __post_init__(self) -> None:
        self._owners: dict[str, _Owner] = {}
        self._pods: dict[str, PodSeen] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._daemon_sets: set[str] = set()
        self._outstanding: dict[str, Outstanding] = {}
        self._added_rvs: set[int] = set()

    def read(self, history: Sequence[Seen]) -> Owners:
        """Read a whole history, sorted by revision."""
        owner_of = {each.uid: each.owner for each in history if isinstance(each, PodSeen) and each.owner}
        commits = defaultdict(list)
        for commit in self.by_rv.values():
            commits[commit.owner or owner_of.get(commit.uid, "")].append(commit)
        self._outstanding = {uid: Outstanding(of_owner) for uid, of_owner in commits.items()}
        for seen in history:
            if isinstance(seen, PodSeen):
                self._pod(seen)
            elif isinstance(seen, OwnerSeen):
                self._owner(seen)
            elif isinstance(seen, DaemonSetSeen):
                self._daemon_sets.add(seen.uid)
        return self

    # -- owners

    def _owner(self, seen: OwnerSeen) -> None:
        owner = self._owners.get(seen.uid)
        if owner is None:
            self._owners[seen.uid] = owner = _Owner(seen, [_At(seen.at_s, seen.rv, seen.replicas)], seen.replicas)
        else:
            if seen.observed < owner.seen.observed:
                text = f"observedGeneration went from {owner.seen.observed} to {seen.observed}"
                self._break("status_backwards", seen, text)
            if seen.replicas != owner.seen.replicas:
                owner.wishes.append(_At(seen.at_s, seen.rv, seen.replicas))
                owner.most = max(owner.most, seen.replicas)
            owner.seen = seen
        self._look_for_rest(owner, seen.rv, seen.at_s)

    def _look_for_rest(self, owner: _Owner, rv: int, at_s: float) -> None:
        seen = owner.seen
        right = (
            not seen.gone
            and not seen.deleting
            and seen.observed == seen.generation
            and len(owner.around) == len(owner.active) == seen.replicas
        )
        if right and seen.status_replicas == seen.replicas and seen.status_ready == len(owner.ready):
            owner.settled_s = min(owner.settled_s, at_s)
        else:
            owner.settled_s = math.inf
        outstanding = self._outstanding.get(seen.uid)
        if right and not self.facts.two_fleets(at_s) and not (outstanding and outstanding.after(rv, at_s)):
            owner.most, owner.wishes = seen.replicas, [_At(at_s, rv, seen.replicas)]
            owner.added.clear()
            self.rests += 1
            self._counted(seen, "rests")

    # -- pods

    def _pod(self, seen: PodSeen) -> None:
        before = self._pods.get(seen.uid)
        if seen.gone:
            self._pods.pop(seen.uid, None)
            if self._names.get((seen.namespace, seen.name)) == seen.uid:
                del self._names[seen.namespace, seen.name]
        else:
            if before is None:
                self._appeared(seen)
            self._pods[seen.uid] = seen
        touched = dict.fromkeys(uid for uid in ((before.owner if before else ""), seen.owner) if uid)
        for uid in touched:
            owner = self._owners.get(uid)
            if owner is not None:
                self._count(owner, seen, before)
                self._look_for_rest(owner, seen.rv, seen.at_s)
            elif before is None and seen.rv in self.by_rv and uid not in self._daemon_sets:
                self.gaps.append(f"revision {seen.rv}: a pod was created for owner {uid}, which was never seen")

    def _appeared(self, seen: PodSeen) -> None:
        self._added_rvs.add(seen.rv)
        name = seen.namespace, seen.name
        other = self._names.get(name)
        if other is not None and other != seen.uid:
            text = f"pod {seen.name} exists twice: {other} and {seen.uid}"
            self.violations.append(Violation("duplicate_name", seen.task, seen.at_s, seen.rv, text))
        self._names[name] = seen.uid

    def _count(self, owner: _Owner, seen: PodSeen, before: PodSeen | None) -> None:
        mine = seen.owner == owner.seen.uid and not seen.gone
        active = mine and seen.active
        was_active = seen.uid in owner.active
        around = mine and (seen.active or seen.deleting)
        for uids, belongs in (
            (owner.existing, mine),
            (owner.around, around),
            (owner.active, active),
            (owner.ready, active and seen.ready),
        ):
            if belongs:
                uids.add(seen.uid)
            else:
                uids.discard(seen.uid)
        if active and not was_active:
            self._joined(owner, seen, before)
        elif was_active and not active:
            self._left(owner, seen)

    def _joined(self, owner: _Owner, seen: PodSeen, before: PodSeen | None) -> None:
        commit = self.by_rv.get(seen.rv) if before is None else None
        if commit is not None and commit.verb == "create":
            self.creates += 1
            self._counted(seen, "creates")
            excused = self.facts.two_fleets(commit.received_s, seen.at_s) and not owner.seen.strict
        else:
            # Of a strict owner any number of fleets makes no more.
            excused = not (before is None and seen.rv in self.second_creates and owner.seen.strict)
        if excused:
            owner.added.add(seen.uid)
        else:
            self._check_create(owner, seen)

    def _left(self, owner: _Owner, seen: PodSeen) -> None:
        owner.added.discard(seen.uid)
        commit = delete_at(self.by_rv, seen)
        if commit is not None:
            self.deletes += 1
            self._counted(seen, "deletes")
        if commit is None or self.facts.two_fleets(commit.received_s, seen.at_s):
            owner.losses.append(_At(seen.at_s, seen.rv))
        else:
            self._check_delete(owner, seen, commit)

    def _counted(self, seen: PodSeen | OwnerSeen, what: str) -> None:
        self.of_queue[seen.task.partition(":")[0], what] += 1

    def _check_create(self, owner: _Owner, seen: PodSeen) -> None:
        others = len(owner.added)
        pods, what = len(owner.active), "active pods"
        if owner.seen.strict:
            pods, what = len(owner.existing), "pods (strict)"
        if pods > owner.most + others:
            text = f"create of {seen.name} made {pods} {what}; at most {owner.most} were wanted since it was at rest"
            if others:
                text += f", and {others} added by others"
            self._break("over_creation", owner.seen._replace(rv=seen.rv, at_s=seen.at_s), text)

    def _check_delete(self, owner: _Owner, seen: PodSeen, commit: Commit) -> None:
        if commit.marks is None:
            from_s = min(commit.recorded_s, commit.received_s) - self.facts.drain_s
            began = [wish for wish in owner.wishes if wish.at_s <= from_s]
            lost = sum(1 for loss in owner.losses if loss.at_s >= from_s)
            since = f"since {self.facts.drain_s:g} s before it came"
        else:
            read = commit.marks.get(RESOURCE_OF_QUEUE[owner.seen.task.partition(":")[0]], 0)
            pods = commit.marks.get("pods", 0)
            began = [wish for wish in owner.wishes if wish.rv <= read]
            lost = sum(1 for loss in owner.losses if loss.rv > pods)
            since = f"since revision {read}, which its turn had read"
        fewest = min(wish.replicas for wish in owner.wishes[max(0, len(began) - 1) :])
        left = len(owner.active)
        if left < fewest - lost:
            text = (
                f"delete of {seen.name} left {left} active pods; at least {fewest} were wanted {since},"
                f" and {lost} were lost to others"
            )
            self._break("over_deletion", owner.seen._replace(rv=seen.rv, at_s=seen.at_s), text)

    # -- the end

    def finish(self) -> Owners:
        """Find the owners that are not as they should be, or were not in time."""
        facts = self.facts
        limit_s = facts.faults_ended_s + facts.settle_limit_s
        for owner in self._owners.values():
            seen = owner.seen
            if seen.gone:
                continue
            if owner.settled_s > limit_s:
                late = "" if owner.settled_s == math.inf else f", right only {owner.settled_s - limit_s:.1f} s later"
                text = (
                    f"{facts.settle_limit_s:g} s after the faults: {len(owner.active)} active of {len(owner.around)}"
                    f" pods, {seen.replicas} wanted; status says {seen.status_replicas} replicas, {seen.status_ready}"
                    f" ready ({len(owner.ready)} are), generation {seen.observed} of {seen.generation}{late}"
                )
                self._break("stuck_key", seen, text)
        left = defaultdict(list)
        for pod in self._pods.values():
            if pod.owner in self._daemon_sets:
                continue
            if pod.owner and (pod.owner not in self._owners or self._owners[pod.owner].seen.gone):
                left[pod.task].append(pod)
        for task, pods in left.items():
            text = f"{len(pods)} pods are left of an owner that is gone, such as {pods[0].name}"
            self.violations.append(Violation("stuck_key", task, pods[0].at_s, pods[0].rv, text))
        return self

    def compare(self, requests: Iterable[Request], from_rv: int) -> Owners:
        """Every pod that appeared has its request in the log, and the other way round: else evidence is missing."""
        asked = {
            each.rv
            for each in requests
            if each.resource == "pods" and each.verb == "create" and each.committed and each.rv > from_rv
        }
        for rv in sorted(asked - self._added_rvs)[:3]:
            self.gaps.append(f"the log has a pod created at revision {rv}; the watch never showed it")
        for rv in sorted(each for each in self._added_rvs - asked if each > from_rv)[:3]:
            self.gaps.append(f"the watch shows a pod created at revision {rv}; the log has no request for it")
        return self

    def _break(self, kind: str, seen: OwnerSeen, text: str) -> None:
        self.violations.append(Violation(kind, seen.task, seen.at_s, seen.rv, text))
