"""Lines as campaigns leave them, for tests: of the JSON that the judge writes."""

from __future__ import annotations

from typing import Any

from oarlock.chaos.faults.points import POINTS
from oarlock.chaos.judge.checker import Findings
from oarlock.chaos.judge.verdict import Run, Verdict, least
from tests.evidence.played import line_of

COMMIT = "abc1234"
USUAL = {"worker": 240, "ingestor": 30, "supervisor": 15, "pause": 10, "redis": 3, "flushall": 2}


def told(seed: int = 1_001, **fields: Any) -> dict[str, Any]:
    """The JSON of a campaign, as the judge writes it."""
    run = Run(
        **{
            **{"seed": seed, "duration_s": 240.0, "asked": 300, "blows": USUAL, "missed": {}, "api": {}, "load": {}},
            **{"settings": {}, "settle_s": 4.2, "state_dir": ""},
            **{name: fields.pop(name) for name in list(fields) if name in Run.__dataclass_fields__},
        }
    )
    further = ("already_exists", "stale_nonce_refusals", "progress_checks", "reissued_writes", "epochs")
    had = {**least(run), **dict.fromkeys((*further, "kills_with_write_in_flight"), 200)}
    return {**Verdict(run, Findings([], [], had, {})).as_json(), **fields}


def line(kind: str = "usual", seed: int = 1_001, commit: str = COMMIT, **fields: Any) -> dict[str, Any]:
    return line_of(told(seed, **fields), commit, kind)


def of_points(times: int, **fields: Any) -> dict[str, Any]:
    blows = {"worker": times * len(POINTS)}
    return line("points", blows=blows, points=dict.fromkeys(POINTS, times), mix="points", **fields)


def of_hosts(times: int, **fields: Any) -> dict[str, Any]:
    return line("hosts", blows=dict.fromkeys(("supervisor", "ingestor", "pause"), times), mix="hosts", **fields)


def of_losses(times: int, **fields: Any) -> dict[str, Any]:
    return line("losses", blows={"redis": times, "flushall": times}, mix="losses", **fields)


def of_one_loss(kind: str, times: int, idle: int = 0, **fields: Any) -> dict[str, Any]:
    return line(kind, only=kind, blows={kind: times, "redis": times}, idle=idle, struck={kind: 7 * times}, **fields)


def of_simulation(hours: float, seed: int = 5_000, seeds: int = 200, commit: str = COMMIT) -> dict[str, Any]:
    found = {"kind": "simulation", "commit": commit, "seed": seed, "seeds": seeds, "verdict": "pass", "violations": 0}
    return {**found, "churn_h": hours}
