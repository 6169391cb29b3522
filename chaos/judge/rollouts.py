"""The pass over the watch history, in revision order: Deployments, over the pods of all their ReplicaSets.

R1. A create of ours never makes more active pods than the replicas and maxSurge allow, but for those that others added.
R2. A size of ours that takes available pods, as its ReplicaSet's status counted them when it was decided, leaves as
many available ones as replicas less maxUnavailable, less those that were lost to others. So does a delete of ours that
takes an available pod from a ReplicaSet which has no more of these than its size. What becomes unready, fails or is
deleted by others is nobody's fault here; nor is a pod that has become available since its end was decided.
R3. With Recreate, a create of ours is never made beside a pod of another ReplicaSet that has not come to its end.
R4. No two ReplicaSets of a Deployment hold the same template, whoever made them.

The first three allow what the loosest spec did since the Deployment was last *at rest*: as it should be, status and all
(``rollouts_at_rest``), with no write of ours still to come that had been announced by then. R2 is not judged once the
replicas were lowered since then: that lowers all ReplicaSets in proportion, available or not (upstream:
pkg/controller/deployment/sync.go, scale). R3 is judged if the strategy was never another one since then. Where a second
fleet wrote since then, only R4 is judged: neither fleet counts what the other has under way.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oarlock.chaos.judge.evidence.evidence import Facts, Violation
from oarlock.chaos.judge.evidence.sightings import DeploymentSeen, OwnerSeen, PodSeen, Seen, note
from oarlock.chaos.judge.owners import Outstanding, delete_at
from oarlock.chaos.judge.rollouts_at_rest import Limits, limits_of, lingers, why_not_at_rest
from oarlock.chaos.judge.writes import Commit


@dataclass(slots=True)
class _Rollout:
    """One Deployment, by uid. ``limits``: each of those since the last rest; ``added``: pods of others.

    ``lost``: available pods that others took since then; ``shrunk``: whether fewer replicas were asked for since then.
    """

    seen: DeploymentSeen
    rested_s: float
    limits: list[Limits]
    sets: dict[str, OwnerSeen] = field(default_factory=dict)
    pods: dict[str, PodSeen] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    lost: int = 0
    shrunk: bool = False
    settled_s: float = math.inf


@dataclass
class Rollouts:
    """Fed the history once; ``finish`` says who is not as it should be. ``sizes``: revision -> our change of a size.

    ``creates_rolling``: creates judged while pods of another ReplicaSet were there; ``deletes_available``: sizes and
    deletes that R2 judged; ``come_back``: templates that came back to a ReplicaSet; ``recreations``: creates that R3
    judged.
    """

    by_rv: Mapping[int, Commit]
    sizes: Mapping[int, Commit]
    facts: Facts
    violations: list[Violation] = field(default_factory=list)
    changes: int = 0
    rests: int = 0
    creates_rolling: int = 0
    deletes_available: int = 0
    come_back: int = 0
    recreations: int = 0

    def __post_init__(self) -> None:
        self._rollouts: dict[str, _Rollout] = {}
        self._of_set: dict[str, _Rollout] = {}
        self._pods: dict[str, PodSeen] = {}
        self._outstanding: dict[str, Outstanding] = {}

    def read(self, history: Sequence[Seen]) -> Rollouts:
        """Read a whole history, sorted by revision."""
        set_of = {each.uid: each.owner for each in history if isinstance(each, PodSeen) and each.owner}
        owner_of = {each.uid: each.owner for each in history if isinstance(each, OwnerSeen) and each.owner}
        commits = defaultdict(list)
        for commit in self.by_rv.values():
            commits[owner_of.get(commit.owner or set_of.get(commit.uid, ""), "")].append(commit)
        for commit in self.sizes.values():
            commits[owner_of.get(commit.uid, "")].append(commit)
        self._outstanding = {uid: Outstanding(found) for uid, found in commits.items()}
        for seen in history:
            match seen:
                case DeploymentSeen():
                    self._deployment(seen)
                case OwnerSeen():
                    self._replicaset(seen)
                case PodSeen():
                    self._pod(seen)
        return self

    # -- what was seen

    def _deployment(self, seen: DeploymentSeen) -> None:
        rollout = self._rollouts.get(seen.uid)
        limits = limits_of(seen)
        if rollout is None:
            rollout = self._rollouts[seen.uid] = _Rollout(seen, seen.at_s, [limits])
        before, rollout.seen = rollout.seen, seen
        if seen.observed < before.observed:
            text = f"observedGeneration went from {before.observed} to {seen.observed}"
            self._break("status_backwards", rollout, seen.rv, seen.at_s, text)
        if seen.digest != before.digest:
            self.changes += 1
            self.come_back += any(each.digest == seen.digest for each in rollout.sets.values())
        if limits != rollout.limits[-1]:
            rollout.limits.append(limits)
        rollout.shrunk = rollout.shrunk or seen.replicas < before.replicas
        self._look_for_rest(rollout, seen.rv, seen.at_s)

    def _replicaset(self, seen: OwnerSeen) -> None:
        former = self._of_set.get(seen.uid)
        rollout = self._rollouts.get(seen.owner)
        if former is not None and (former is not rollout or seen.gone):
            former.sets.pop(seen.uid, None)
            self._look_for_rest(former, seen.rv, seen.at_s)
        if rollout is None or seen.gone:
            return
        before = rollout.sets.get(seen.uid)
        rollout.sets[seen.uid] = seen
        self._of_set[seen.uid] = rollout
        if before is None or before.digest != seen.digest:
            twins = [each.task for each in rollout.sets.values() if each.digest == seen.digest and each is not seen]
            if twins:
                text = f"{seen.task} holds the same template as {', '.join(twins)}"
                self._break("twin_replicaset", rollout, seen.rv, seen.at_s, text)
        if before is not None and seen.rv in self.sizes and before.status_available > seen.replicas:
            self._took(rollout, f"size {seen.replicas} of {seen.task}", seen.rv, seen.at_s)
        self._look_for_rest(rollout, seen.rv, seen.at_s)

    def _pod(self, seen: PodSeen) -> None:
        before = note(self._pods, seen.uid, seen)
        for uid in dict.fromkeys((before.owner if before else "", seen.owner)):
            rollout = self._of_set.get(uid)
            if rollout is not None:
                self._change(rollout, before, seen)
                self._look_for_rest(rollout, seen.rv, seen.at_s)

    def _change(self, rollout: _Rollout, before: PodSeen | None, seen: PodSeen) -> None:
        known = rollout.pods.get(seen.uid)
        if seen.gone or self._of_set.get(seen.owner) is not rollout:
            rollout.pods.pop(seen.uid, None)
        else:
            rollout.pods[seen.uid] = seen
        now = rollout.pods.get(seen.uid)
        if now is not None and now.active and known is None:
            commit = self.by_rv.get(seen.rv) if before is None else None
            if commit is None:
                rollout.added.add(seen.uid)
            elif self._is_judged(rollout, seen.at_s):
                self._created(rollout, seen)
        if now is None or not now.active:
            rollout.added.discard(seen.uid)
        min_ready_s = rollout.seen.min_ready_s
        lost = known is not None and known.available(seen.at_s, min_ready_s)
        if lost and not (now is not None and now.available(seen.at_s, min_ready_s)):
            commit = delete_at(self.by_rv, seen)
            if commit is None:
                rollout.lost += 1
            elif known is not None and known.available(commit.decided_s, min_ready_s):
                self._deleted(rollout, seen)

    def _is_judged(self, rollout: _Rollout, at_s: float) -> bool:
        """Whether no second fleet has written since the last rest."""
        facts = self.facts
        until_s = facts.second_to_s + facts.drain_s
        return not facts.second_to_s or at_s < facts.second_from_s or rollout.rested_s > until_s

    # -- what is judged

    def _created(self, rollout: _Rollout, seen: PodSeen) -> None:
        active = [pod for pod in rollout.pods.values() if pod.active]
        beside = [pod for pod in rollout.pods.values() if lingers(pod) and pod.owner != seen.owner]
        self.creates_rolling += bool(beside)
        most = max(each.most for each in rollout.limits)
        if len(active) > most + len(rollout.added):
            text = f"create of {seen.name} made {len(active)} active pods; {most} may be"
            if rollout.added:
                text += f", and {len(rollout.added)} added by others"
            self._break("over_surge", rollout, seen.rv, seen.at_s, text)
        if all(each.recreates for each in rollout.limits):
            self.recreations += 1
            if beside:
                names = ", ".join(sorted(pod.name for pod in beside)[:4])
                text = f"create of {seen.name} beside {len(beside)} pods of another template: {names}"
                self._break("recreate_overlap", rollout, seen.rv, seen.at_s, text)

    def _deleted(self, rollout: _Rollout, seen: PodSeen) -> None:
        """A delete of ours that took an available pod. One of those beyond the size was judged with the size."""
        owner, left = rollout.sets.get(seen.owner), self._available(rollout, seen.at_s)[seen.owner]
        if owner is not None and left < owner.replicas:
            self._took(rollout, f"delete of {seen.name}", seen.rv, seen.at_s)

    def _took(self, rollout: _Rollout, what: str, rv: int, at_s: float) -> None:
        """Available pods were taken by us."""
        fewest = min(each.fewest for each in rollout.limits)
        if rollout.shrunk or not fewest or not self._is_judged(rollout, at_s):
            return
        self.deletes_available += 1
        available = self._available(rollout, at_s)
        left = sum(min(available[uid], owner.replicas) for uid, owner in rollout.sets.items())
        if left < fewest - rollout.lost:
            text = f"{what} left {left} available pods; at least {fewest} have to be"
            if rollout.lost:
                text += f", and {rollout.lost} were lost to others"
            self._break("unavailable", rollout, rv, at_s, text)

    def _available(self, rollout: _Rollout, at_s: float) -> Counter[str]:
        """How many pods of each ReplicaSet are available."""
        min_ready_s = rollout.seen.min_ready_s
        return Counter(pod.owner for pod in rollout.pods.values() if pod.available(at_s, min_ready_s))

    def _look_for_rest(self, rollout: _Rollout, rv: int, at_s: float) -> None:
        seen = rollout.seen
        if why_not_at_rest(seen, rollout.sets.values(), rollout.pods.values()):
            rollout.settled_s = math.inf
            return
        rollout.settled_s = min(rollout.settled_s, at_s)
        outstanding = self._outstanding.get(seen.uid)
        if outstanding is None or not outstanding.after(rv, at_s):
            self.rests += 1
            rollout.rested_s, rollout.limits = at_s, [limits_of(seen)]
            rollout.added.clear()
            rollout.lost, rollout.shrunk = 0, False

    # -- the end

    def finish(self) -> Rollouts:
        """Find the Deployments that are not as they should be, or were not in time."""
        limit_s = self.facts.faults_ended_s + self.facts.settle_limit_s
        for rollout in self._rollouts.values():
            seen = rollout.seen
            if seen.gone:
                if rollout.sets:
                    text = f"{len(rollout.sets)} ReplicaSets are left of a Deployment that is gone"
                    self._break("stuck_key", rollout, seen.rv, seen.at_s, text)
            elif rollout.settled_s > limit_s:
                why = why_not_at_rest(seen, rollout.sets.values(), rollout.pods.values())
                why = why or f"right only {rollout.settled_s - limit_s:.1f} s later"
                text = f"{self.facts.settle_limit_s:g} s after the faults: {why}"
                self._break("stuck_key", rollout, seen.rv, seen.at_s, text)
        return self

    def _break(self, kind: str, rollout: _Rollout, rv: int, at_s: float, text: str) -> None:
        self.violations.append(Violation(kind, rollout.seen.task, at_s, rv, text))
