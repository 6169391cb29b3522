"""The pass over the watch history, in revision order: pods of DaemonSets, node by node.

D1. A create never makes more than one pod of a DaemonSet on a node; two while it surges, or did less than 2 D ago.
Counted are pods that exist without a deletionTimestamp, finished or not, by the node they are on or were made for.
Adopted pods are not counted. This holds at every moment, whoever writes.

D2. Our deletes never have more than maxUnavailable nodes down at a time.
A node *is up* while it has an available pod of the set: ready, for minReadySeconds, and neither ending nor over. It
goes *down through us* when a delete of ours takes its last available pod, and stays so, whatever else befalls it, until
it is up again or is no node of the set any more: in between, no view of the cluster shows it up, so whoever takes down
another has to count it. Hence also a node counts whose replacement is not ready yet, or was killed by others.
All other nodes that are down do not count: their pods were deleted by others, failed or lost their readiness, or the
node came, went, or was tainted; of these we may not have known yet.

A delete of ours is judged if it took down a node through us, and
- the node belonged to the set, unchanged, in all that the decision had not read (node and DaemonSet);
- the pod was available when the key was claimed for that decision (an old pod that is not may go at once; if it has
  become available since, its node counts from then on, but this delete is not judged);
- no other pod there stopped being available, but for us, since the revision of pods that the decision had read (a
  surging set counts on the new pod);
- it did not remove one of two pods of a set that does not surge (the one bound first stays, ready or not).

What the decision had read: the watermarks at the last claim before the delete was announced; where none was seen, all
up to 2 D before. Then the nodes down through us, this one included, must not be more than the largest maxUnavailable
(of the spec, in percent of the nodes it has) of that time and since: 0 for a set that surges or is OnDelete. Deletes
while a second fleet writes as well are not judged and count as done by others.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oarlock.chaos.judge.daemon_state import Daemons, Read, Rule
from oarlock.chaos.judge.daemons_at_rest import Converged
from oarlock.chaos.judge.evidence.evidence import Facts, Violation
from oarlock.chaos.judge.evidence.placing import NOWHERE, limit_of, place
from oarlock.chaos.judge.evidence.sightings import DaemonSetSeen, NodeSeen, PodSeen, RevisionSeen, Seen, note
from oarlock.chaos.judge.fences import View
from oarlock.chaos.judge.owners import delete_at
from oarlock.chaos.judge.writes import Commit


@dataclass
class DaemonSets:
    """Fed the history once; ``finish`` says who is not as it should be.

    ``views``: of a task, what each claim had read. ``rolling_deletes``: those that were judged; ``most_down``: nodes
    of a set that were ever down through us at a time; ``pairs``: creates beside another pod of the set; ``moves``: of a
    node into or out of a set.
    """

    by_rv: Mapping[int, Commit]
    views: Mapping[str, Sequence[View]]
    facts: Facts
    violations: list[Violation] = field(default_factory=list)
    creates: int = 0
    deletes: int = 0
    rests: int = 0
    rolling_deletes: int = 0
    most_down: int = 0
    pairs: int = 0
    rollouts: int = 0
    moves: int = 0

    def __post_init__(self) -> None:
        self._sets: dict[str, Daemons] = {}
        self._nodes: dict[str, NodeSeen] = {}
        self._pods: dict[str, PodSeen] = {}
        self._converged = Converged()
        self._times: list[float] = []
        self._rvs: list[int] = []

    def read(self, history: Sequence[Seen]) -> DaemonSets:
        """Read a whole history, sorted by revision."""
        self._rvs = [seen.rv for seen in history]
        latest_s = -math.inf
        for seen in history:
            latest_s = max(latest_s, seen.at_s)
            self._times.append(latest_s)
        for seen in history:
            match seen:
                case PodSeen():
                    self._pod(seen)
                case DaemonSetSeen():
                    self._daemon_set(seen)
                case NodeSeen():
                    self._node(seen)
                case RevisionSeen():
                    self._converged.revision(seen)
                    if seen.owner in self._sets:
                        self._look_for_rest(self._sets[seen.owner], seen.at_s)
        return self

    # -- nodes and sets

    def _node(self, seen: NodeSeen) -> None:
        note(self._nodes, seen.name, seen)
        for daemons in self._sets.values():
            self._settle_place(daemons, seen.name, "nodes", seen.rv)
            self._note_rule(daemons, "nodes", seen)
            self._look_for_rest(daemons, seen.at_s)

    def _daemon_set(self, seen: DaemonSetSeen) -> None:
        daemons = self._sets.get(seen.uid)
        if daemons is None:
            daemons = self._sets[seen.uid] = Daemons(seen)
        before, daemons.seen = daemons.seen, seen
        if seen.observed < before.observed:
            text = f"observedGeneration went from {before.observed} to {seen.observed}"
            self._break("status_backwards", daemons, seen.rv, seen.at_s, text)
        self.rollouts += seen.digest != before.digest
        for node in self._nodes:
            self._settle_place(daemons, node, "daemonsets", seen.rv)
        self._note_rule(daemons, "daemonsets", seen)
        self._look_for_rest(daemons, seen.at_s)

    def _settle_place(self, daemons: Daemons, name: str, resource: str, rv: int) -> None:
        node = self._nodes.get(name)
        now = place(daemons.seen, node) if node is not None else NOWHERE
        if now == daemons.places.get(name, NOWHERE):
            return
        self.moves += name in daemons.places
        daemons.places[name] = now
        daemons.moved[name, resource] = rv
        if not now.runs:
            daemons.down.pop(name, None)

    def _note_rule(self, daemons: Daemons, resource: str, seen: NodeSeen | DaemonSetSeen) -> None:
        count = sum(each.runs for each in daemons.places.values())
        rule = Rule(seen.rv, resource, seen.at_s, limit_of(daemons.seen, count), daemons.seen.surges)
        if not daemons.rules or daemons.rules[-1][3:] != rule[3:]:
            daemons.rules.append(rule)

    # -- pods

    def _pod(self, seen: PodSeen) -> None:
        before = note(self._pods, seen.uid, seen)
        for uid in dict.fromkeys((before.owner if before else "", seen.owner)):
            daemons = self._sets.get(uid)
            if daemons is not None:
                self._change(daemons, before, seen)
                self._look_for_rest(daemons, seen.at_s)

    def _change(self, daemons: Daemons, before: PodSeen | None, seen: PodSeen) -> None:
        uid, node = daemons.seen.uid, seen.target
        known = daemons.pods.get(seen.uid)
        daemons.look(node, seen.at_s)
        if seen.gone or seen.owner != uid:
            daemons.pods.pop(seen.uid, None)
        else:
            daemons.pods[seen.uid] = seen
            if known is None and before is None:
                self._appeared(daemons, seen)
            elif known is None:
                daemons.adopted.add(seen.uid)
        now = daemons.pods.get(seen.uid)
        min_ready_s = daemons.seen.min_ready_s
        ended = known is not None and not known.deleting and (now is None or now.deleting)
        commit = delete_at(self.by_rv, seen) if ended else None
        self.deletes += commit is not None
        lost = known is not None and known.available(seen.at_s, min_ready_s)
        if lost and not (now is not None and now.available(seen.at_s, min_ready_s)):
            if commit is not None and not self.facts.two_fleets(commit.received_s, seen.at_s):
                assert known is not None
                self._deleted(daemons, known, seen, commit)
            else:
                daemons.lost[node] = seen.rv
        daemons.look(node, seen.at_s)

    def _appeared(self, daemons: Daemons, seen: PodSeen) -> None:
        self.creates += seen.rv in self.by_rv
        here = [pod for pod in daemons.on(seen.target) if not pod.deleting and pod.uid not in daemons.adopted]
        if len(here) > 1:
            self.pairs += 1
            from_s = seen.at_s - 2 * self.facts.drain_s
            at = bisect.bisect_right(daemons.rules, from_s, key=lambda rule: rule.at_s)
            surged = any(rule.surges for rule in daemons.rules[max(0, at - 1) :])
            if len(here) > 1 + surged:
                others = ", ".join(sorted(pod.name for pod in here if pod.uid != seen.uid))
                text = f"create of {seen.name} made {len(here)} pods on {seen.target}: beside it there is {others}"
                self._break("duplicate_daemon", daemons, seen.rv, seen.at_s, text)

    def _deleted(self, daemons: Daemons, pod: PodSeen, seen: PodSeen, commit: Commit) -> None:
        """A delete of ours that took an available pod."""
        node, at_s = pod.target, seen.at_s
        if daemons.is_up(node, at_s):
            return
        read = self._read_by(daemons.seen.task, commit)
        rules = daemons.rules_since(read)
        others = [each for each in daemons.on(node) if not each.deleting]
        if (
            not daemons.places.get(node, NOWHERE).runs
            or not all(read.has(name, daemons.moved.get((node, name), 0)) for name in ("nodes", "daemonsets"))
            or not read.has("pods", daemons.lost.get(node, 0))
            or (others and not all(rule.surges for rule in rules))
        ):
            return
        for each in list(daemons.down):
            daemons.look(each, at_s)
        daemons.down[node] = seen.rv
        if not pod.available(read.at_s, daemons.seen.min_ready_s):
            return
        self.rolling_deletes += 1
        count, limit = len(daemons.down), max(rule.limit for rule in rules)
        self.most_down = max(self.most_down, count)
        if count > limit:
            text = (
                f"delete of {pod.name} took {node} down: {count} nodes are down through our own deletes"
                f" ({', '.join(sorted(daemons.down))}), and {limit} may be"
            )
            self._break("node_down", daemons, seen.rv, at_s, text)

    def _read_by(self, task: str, commit: Commit) -> Read:
        """What the decision for a delete had read at least."""
        views = self.views.get(task, ())
        at = bisect.bisect_right(views, commit.recorded_s, key=lambda view: view.at_s)
        view = views[at - 1] if at else None
        from_s = min(commit.recorded_s, commit.received_s) - 2 * self.facts.drain_s
        index = bisect.bisect_right(self._times, from_s)
        oldest = self._rvs[index - 1] if index else 0
        marks = dict.fromkeys(("pods", "nodes", "daemonsets"), oldest)
        return Read(from_s, marks) if view is None else Read(view.at_s, marks | view.marks)

    # -- the end

    def _look_for_rest(self, daemons: Daemons, at_s: float) -> None:
        if self._converged.why_not(daemons.seen, daemons.places, daemons.pods.values()):
            daemons.settled_s = math.inf
        elif daemons.settled_s == math.inf:
            daemons.settled_s = at_s
            self.rests += 1

    def finish(self) -> DaemonSets:
        """Find the DaemonSets that are not as they should be, or were not in time."""
        limit_s = self.facts.faults_ended_s + self.facts.settle_limit_s
        for daemons in self._sets.values():
            seen = daemons.seen
            if seen.gone:
                if daemons.pods:
                    text = f"{len(daemons.pods)} pods are left of a DaemonSet that is gone"
                    self._break("stuck_key", daemons, seen.rv, seen.at_s, text)
                continue
            why = self._converged.why_not(seen, daemons.places, daemons.pods.values())
            if daemons.settled_s > limit_s:
                why = why or f"right only {daemons.settled_s - limit_s:.1f} s later"
                text = f"{self.facts.settle_limit_s:g} s after the faults: {why}"
                self._break("stuck_key", daemons, seen.rv, seen.at_s, text)
        return self

    def _break(self, kind: str, daemons: Daemons, rv: int, at_s: float, text: str) -> None:
        self.violations.append(Violation(kind, daemons.seen.task, at_s, rv, text))
