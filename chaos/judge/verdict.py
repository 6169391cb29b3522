"""The verdict: findings as numbers, whether there was anything to find, and both as a table and as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from oarlock.chaos.judge.checker import KINDS, MEANINGS, Findings
from oarlock.chaos.judge.recovery import percentile

PLURALS = {kind: f"{kind}s" for kind in KINDS} | {
    "duplicate_daemon": "duplicate_daemon_pods",
    "node_down": "nodes_down_by_us",
    "unavailable": "unavailable_by_us",
    "status_backwards": "statuses_backwards",
    "watermark_backwards": "watermarks_backwards",
    "crash": "crashes",
}

_NOT_JUDGED = (
    "while the second fleet ran, and D longer: over_creations of owners that are not strict, over_deletions,"
    " nodes_down_by_us; for Deployments until their next rest over_surges, unavailable_by_us, recreate_overlaps"
)
"""Two fleets know nothing of each other's deletes, and the default ReplicaSet rule needs one writer."""

_API_ALONE = (
    "without a trace of Redis, which is watched only where there is one server with one fleet: overlaps, lost_keys,"
    " unannounced_writes, early_opens, watermarks_backwards"
)

_COUNTED = ("worker", "ingestor", "supervisor", "pause", "redis", "flushall")

POINTS = 20
"""So many named points there are (``faults.points``)."""


@dataclass(frozen=True)
class Run:
    """What was done, for the verdict. ``blows``: kind -> how many; ``api``: requests befallen, by action.

    ``second_fleet``: whether one ran beside for a while.
    """

    seed: int
    duration_s: float
    asked: int
    blows: Mapping[str, int]
    missed: Mapping[str, int]
    api: Mapping[str, int]
    load: Mapping[str, int]
    settings: Mapping[str, Any]
    settle_s: float
    state_dir: str
    second_fleet: bool = False
    only: str = ""
    """The one sort of fault that was played."""
    struck: Mapping[str, int] = field(default_factory=dict)
    """Sort -> how often it really struck; ``idle``: episodes that never did."""
    idle: int = 0
    api_alone: bool = False
    """Redis was not watched."""
    mix: str = "usual"
    points: Mapping[str, int] = field(default_factory=dict)
    """Where workers killed themselves, if the mix has such kills -> how often."""

    @property
    def done(self) -> int:
        """How many faults were carried out of those that were asked for."""
        return sum(self.blows.get(kind, 0) for kind in ((self.only,) if self.only else _COUNTED))


def least(run: Run) -> dict[str, int]:
    """How many opportunities of each sort a run must have had to prove anything."""
    if run.only or run.api_alone:
        return {
            "faults": max(1, run.asked * 9 // 10),
            "striking_faults": max(1, run.done * 9 // 10) if run.only else 0,
            "creates": 20,
            "deletes": 20,
            "rests": 5,
            "progress_checks_refused": 5 if run.only == "refused-names" else 0,
        }
    kills, losses = run.blows.get("worker", 0), run.blows.get("redis", 0) + run.blows.get("flushall", 0)
    # Where nobody dies Redis is lost, again and again: most of the time is drained away.
    deaths = kills + run.blows.get("supervisor", 0)
    # What the load does takes its time, however many workers are killed meanwhile.
    done = min(kills, round(run.duration_s))
    needed = {
        "faults": run.asked * 9 // 10,
        "creates": max(20, done),
        "deletes": max(20, done),
        "kills_with_write_in_flight": max(1, kills // 4) if deaths else 0,
        "late_commits": max(1, done // 20) if deaths else 0,
        "reissued_writes": max(1, done // 10) if deaths else 0,
        "rests": max(10, done // 5),
        "epochs": 1 + losses,
        "rollouts": max(2, done // 20),
        "rolling_deletes": max(3 if deaths else 1, done // 6),
        "node_moves": max(20, done // 4),
        "deployment_rollouts": max(5, done // 10),
        "templates_come_back": 1,
        "size_writes": max(10, done // 2),
        "creates_while_rolling": max(5, done // 4),
        "deletes_of_available": max(5, done // 8),
        "recreations": max(1, done // 40),
    }
    if run.points:
        needed["points"] = POINTS
        needed["kills_at_each_point"] = run.asked // (2 * POINTS)
    if run.blows.get("pause host", 0) >= 3:
        needed["stale_nonce_refusals"] = 1
    if run.second_fleet:
        needed["second_fleet_creates"] = 1
        needed["second_fleet_already_exists"] = 1 if kills >= 40 else 0
    return needed


UNPROVED_A_LOSS = 25
"""Writes that cannot be held against their announcement, for the trace broke off with Redis: what was announced in its
last milliseconds. Five campaigns with one or two losses each had none but for a single write; a burst of creates just
then may have a few tens. More would hide writes that were never announced.
"""


def most(found: Mapping[str, int]) -> dict[str, int]:
    """How many cases of each kind that cannot be judged a run may have. ``found``: its opportunities."""
    return {"unproved_writes": UNPROVED_A_LOSS * max(0, found["epochs"] - 1)}


@dataclass(frozen=True)
class Verdict:
    """The verdict on one campaign."""

    run: Run
    findings: Findings
    too_few: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Opportunity -> (had, needed)."""
    too_many: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What was let pass -> (had, allowed)."""

    @classmethod
    def of(cls, run: Run, findings: Findings) -> Verdict:
        found = findings.opportunities
        had = {**found, "faults": run.done, "striking_faults": run.blows.get(run.only, 0) - run.idle}
        had |= {"points": len(run.points), "kills_at_each_point": min(run.points.values(), default=0)}
        short = {name: (had[name], needed) for name, needed in least(run).items() if had[name] < needed}
        over = {name: (found[name], allowed) for name, allowed in most(found).items() if found.get(name, 0) > allowed}
        return cls(run, findings, short, over)

    @property
    def word(self) -> str:
        """pass, fail, or no evidence."""
        if self.findings.violations or self.too_many:
            return "fail"
        return "no evidence" if self.findings.gaps or self.too_few else "pass"

    def as_json(self) -> dict[str, Any]:
        """The last line. Keys: see `oarlock chaos --help`."""
        run, found = self.run, self.findings
        return {
            "verdict": self.word,
            **{PLURALS[kind]: found.count(kind) for kind in KINDS},
            "evidence_gaps": len(found.gaps),
            "first": [f"{each.kind} {each.task}: {each.text}" for each in found.violations[:5]] + found.gaps[:5],
            "opportunities": found.opportunities,
            "by_kind": found.by_kind,
            "too_few": {name: {"had": had, "needed": needed} for name, (had, needed) in self.too_few.items()},
            "too_many": {name: {"had": had, "allowed": allowed} for name, (had, allowed) in self.too_many.items()},
            "faults": {
                "worker_kills": run.blows.get("worker", 0),
                "ingestor_kills": run.blows.get("ingestor", 0),
                "supervisor_kills": run.blows.get("supervisor", 0),
                "pauses": run.blows.get("pause", 0),
                "redis_losses": run.blows.get("redis", 0) + run.blows.get("flushall", 0),
                "lost": {kind: run.blows.get(kind, 0) for kind in ("flushall", "redis")},
                "second_fleets": run.blows.get("second fleet", 0),
                "mix": run.mix,
                "points": dict(run.points),
                "only": run.only,
                "struck": dict(run.struck),
                "idle": run.idle,
                "total": run.done,
                "asked": run.asked,
                "missed": dict(run.missed),
                "api": dict(run.api),
            },
            "recovery": {
                "worker_kill_to_claim_ms": _spread(found.worker_ms),
                "supervisor_kill_to_claim_ms": _spread(found.supervisor_ms),
                "change_to_claim_ms": _spread([each * 1000 for each in found.waits_s]),
                "settle_s": run.settle_s,
            },
            "answers": dict(sorted(found.answers.items())),
            "load": dict(run.load),
            "seed": run.seed,
            "duration_s": run.duration_s,
            "settings": dict(run.settings),
            "state_dir": run.state_dir,
            "not_judged": "; ".join(each for each in (_NOT_JUDGED if run.second_fleet else "", self._unseen) if each),
        }

    @property
    def _unseen(self) -> str:
        return _API_ALONE if self.run.api_alone else ""

    def table(self) -> Table:
        """For people."""
        table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
        for heading, justify in (("", "left"), ("FOUND", "right"), ("", "left")):
            table.add_column(heading, justify=justify)  # type: ignore[arg-type]
        for kind in KINDS:
            count = self.findings.count(kind)
            style = "bold red" if count else None
            table.add_row(PLURALS[kind].replace("_", " "), str(count), MEANINGS[kind], style=style)
        table.add_section()
        for name, count in self.findings.opportunities.items():
            short = f"too few: {self.too_few[name][1]} needed" if name in self.too_few else ""
            if name in self.too_many:
                short = f"too many: {self.too_many[name][1]} allowed"
            table.add_row(name.replace("_", " "), str(count), short, style="bold red" if short else "dim")
        return table

    def kinds_table(self) -> Table:
        """What was done for each kind, for people."""
        table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
        table.add_column("QUEUE")
        by_kind = self.findings.by_kind
        columns = list(next(iter(by_kind.values()), {}))
        for name in columns:
            table.add_column(name.replace("_", " ").upper(), justify="right")
        for queue, counts in by_kind.items():
            table.add_row(queue, *(str(counts[name]) for name in columns))
        return table


def _spread(values: list[float]) -> dict[str, float | int | None]:
    """Count, p50, p99 and largest, in ms."""

    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 1)

    return {
        "count": len(values),
        "p50": rounded(percentile(values, 0.5)),
        "p99": rounded(percentile(values, 0.99)),
        "max": rounded(max(values, default=None)),
    }
