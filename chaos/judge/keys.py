"""Changes against claims: every change that matters to an owner is followed by a claim that has read it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from oarlock.chaos.judge.evidence.changes import Change, changes_of
from oarlock.chaos.judge.evidence.evidence import Facts, Violation
from oarlock.chaos.judge.evidence.sightings import Seen
from oarlock.chaos.judge.fences import View

QUIET_S = 1.5
"""A change that came so shortly before the end of the run need not have been claimed."""


@dataclass
class Keys:
    """``waits_s``: from each change to the claim that had read it; ``of_queue``: how many changes had one."""

    views: Mapping[str, Sequence[View]]
    open_spans: Sequence[tuple[float, float]]
    violations: list[Violation] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    of_queue: Counter[str] = field(default_factory=Counter)

    def read(self, history: Iterable[Seen], facts: Facts, from_rv: int = 0) -> Keys:
        """Read a whole history. What was there at ``from_rv``, before anything was recorded, is no change."""
        for task, changes in changes_of(history).items():
            by_resource: dict[str, list[Change]] = defaultdict(list)
            for each in (each for each in changes if each.rv > from_rv):
                by_resource[each.resource].append(each)
            for resource, of_resource in by_resource.items():
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
        self.of_queue[task.partition(":")[0]] += 1
        if wait_s <= facts.settle_limit_s:
            return
        open_s = max((min(end, at_s) - max(begin, change.at_s) for begin, end in self.open_spans), default=0.0)
        if open_s > facts.settle_limit_s:
            text = f"{change.what}: claimed only after {wait_s:.1f} s, {open_s:.1f} s of them open without a break"
            self.violations.append(Violation("lost_key", task, change.at_s, change.rv, text))
