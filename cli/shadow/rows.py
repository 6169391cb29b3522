"""What a report says of each owner, from its course; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from oarlock.workers.turn.shadow import standing
from oarlock.workers.turn.shadow.course import PATIENCE_MS, Course
from oarlock.workers.turn.shadow.judge import SAME, UNEXPLAINED

STOOD = "not-done"
"""What is wanted for longer than a minute while upstream does nothing, and nothing explains it."""


class OwnerRow(NamedTuple):
    """``windows``: closed ones, by verdict. ``pending_ms``: how long the open one is open. ``unexplained``: windows,
    and what stands now. ``wants``: what stands, and ``why``: its reason.
    """

    queue: str
    key: str
    windows: Mapping[str, int]
    pending_ms: int | None
    unexplained: int
    wants: str
    why: str
    lines: tuple[str, ...]
    last_ms: int

    @property
    def explained(self) -> dict[str, int]:
        return {verdict: count for verdict, count in self.windows.items() if verdict not in (SAME, UNEXPLAINED)}

    def as_row(self) -> dict[str, Any]:
        """For a table and for JSON."""
        said = [f"{reason} {count}" for reason, count in sorted(self.explained.items())]
        return {
            "owner": f"{self.queue} {self.key}",
            "windows": sum(self.windows.values()),
            "same": self.windows.get(SAME, 0),
            "explained": ", ".join(said),
            "unexplained": self.unexplained,
            "pending_ms": self.pending_ms,
            "wants": self.wants,
            "why": self.why,
            "lines": list(self.lines),
        }


def owner_row(queue: str, key: str, course: Course, now_ms: int, *, told_refused: bool = False) -> OwnerRow:
    """``told_refused``: events tell of a refused create."""
    stood_ms = now_ms - course.wanted_ms
    stands = not course.wanted.nothing and stood_ms > PATIENCE_MS
    why = standing.reason_of(course, told_refused=told_refused) if stands else ""
    lines = [each.text for each in course.told]
    overdue = course.doubted(now_ms)
    lines += [each.text for each in overdue]
    wants = standing.told(course)
    if stands and not why:
        lines.append(f"for {stood_ms // 1000} s upstream has not done what was decided: {wants}")
    bad = course.windows.get(UNEXPLAINED, 0) + (UNEXPLAINED in course.reasons) + bool(overdue) + (stands and not why)
    return OwnerRow(
        queue,
        key,
        course.windows,
        now_ms - course.opened_ms if course.opened_ms else None,
        bad,
        wants if stands else "",
        why or (STOOD if stands else ""),
        tuple(lines),
        max(course.closed_ms, course.opened_ms),
    )


def asks_for_events(course: Course, now_ms: int) -> bool:
    """Whether only events of upstream's can tell why it creates nothing."""
    stands = bool(course.wanted.creates) and now_ms - course.wanted_ms > PATIENCE_MS
    return stands and not standing.reason_of(course)


def totals(windows: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    """By controller, over all owners there were."""
    found: dict[str, dict[str, int]] = {}
    for (queue, verdict), count in sorted(windows.items()):
        found.setdefault(queue, {})[verdict] = count
    return [_total(queue, by_verdict) for queue, by_verdict in found.items()]


def _total(queue: str, by_verdict: Mapping[str, int]) -> dict[str, Any]:
    reasons = {verdict: count for verdict, count in by_verdict.items() if verdict not in (SAME, UNEXPLAINED)}
    return {
        "controller": queue,
        "windows": sum(by_verdict.values()),
        "same": by_verdict.get(SAME, 0),
        "explained": ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items())),
        "unexplained": by_verdict.get(UNEXPLAINED, 0),
    }


def worth_telling(rows: Iterable[OwnerRow]) -> list[OwnerRow]:
    """The owners with something unexplained or something that stands, the worst first."""
    found = [row for row in rows if row.unexplained or row.wants]
    return sorted(found, key=lambda row: (-row.unexplained, row.queue, row.key))
