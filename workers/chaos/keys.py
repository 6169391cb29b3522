"""Changes against claims: every change that matters to an owner is followed by a claim that has read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workers.chaos.evidence import Facts, OwnerSeen, PodSeen, Seen, Violation
from workers.chaos.fences import View

QUIET_S = 1.5
"""A change this young at the end of the run need not have been claimed."""


class Change(NamedTuple):
    """Something a decision or a status depends on."""

    at_s: float
    rv: int
    resource: str
    what: str


def changes_of(history: Iterable[Seen]) -> dict[str, list[Change]]:
    """The changes of every owner that is there in the end, by task, since it appeared; in revision order."""
    found: dict[str, list[Change]] = defaultdict(list)
    pods: dict[str, PodSeen] = {}
    owners: dict[str, OwnerSeen] = {}
    for seen in history:
        if isinstance(seen, OwnerSeen):
            before = owners.get(seen.task)
            if seen.gone:
                owners.pop(seen.task, None)
                found.pop(seen.task, None)
                continue
            owners[seen.task] = seen
            if before is None or before.uid != seen.uid:
                found[seen.task] = [Change(seen.at_s, seen.rv, "replicasets", "was created")]
            elif (before.generation, before.deleting) != (seen.generation, seen.deleting):
                found[seen.task].append(Change(seen.at_s, seen.rv, "replicasets", f"generation {seen.generation}"))
        elif isinstance(seen, PodSeen):
            was = pods.pop(seen.uid, None)
            if not seen.gone:
                pods[seen.uid] = seen
            if was is not None and not seen.gone and _judged(was) == _judged(seen):
                continue
            for each in dict.fromkeys((was or seen, seen)):
                owner = owners.get(each.task)
                if each.owner and owner is not None and owner.uid == each.owner:
                    what = f"pod {seen.name} {'has gone' if seen.gone else 'appeared' if was is None else 'changed'}"
                    if not (found[each.task] and found[each.task][-1].rv == seen.rv):
                        found[each.task].append(Change(seen.at_s, seen.rv, "pods", what))
    return found


def _judged(pod: PodSeen) -> tuple[object, ...]:
    return pod.owner, pod.labels, pod.deleting, pod.phase, pod.ready, pod.node


@dataclass
class Keys:
    """``waits_s``: from each change to the claim that had read it."""

    views: Mapping[str, Sequence[View]]
    open_spans: Sequence[tuple[float, float]]
    violations: list[Violation] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)

    def read(self, history: Iterable[Seen], facts: Facts) -> Keys:
        """All of a history."""
        for task, changes in changes_of(history).items():
            for resource in ("pods", "replicasets"):
                of_resource = [each for each in changes if each.resource == resource]
                self._follow(task, resource, of_resource, facts)
        return self

    def _follow(self, task: str, resource: str, changes: Sequence[Change], facts: Facts) -> None:
        at = 0
        for view in self.views.get(task, ()):
            mark = view.marks.get(resource, 0)
            while at < len(changes) and changes[at].rv <= mark:
                self._claimed(task, changes[at], view.at_s, facts)
                at += 1
        never = [each for each in changes[at:] if facts.ended_s - each.at_s > QUIET_S]
        if never:
            first = never[0]
            text = f"{first.what} (and {len(never) - 1} more changes): no claim had read it when the run ended"
            self.violations.append(Violation("lost_key", task, first.at_s, first.rv, text))

    def _claimed(self, task: str, change: Change, at_s: float, facts: Facts) -> None:
        wait_s = max(0.0, at_s - change.at_s)
        self.waits_s.append(wait_s)
        if wait_s <= facts.settle_limit_s:
            return
        open_s = max((min(end, at_s) - max(begin, change.at_s) for begin, end in self.open_spans), default=0.0)
        if open_s > facts.settle_limit_s:
            text = f"{change.what}: claimed only after {wait_s:.1f} s, {open_s:.1f} s of them open without a break"
            self.violations.append(Violation("lost_key", task, change.at_s, change.rv, text))
