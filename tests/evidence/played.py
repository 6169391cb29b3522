"""What has been played, a line a campaign."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oarlock.chaos.judge.checker import KINDS
from oarlock.chaos.judge.verdict import PLURALS
from tests import ROOT
from tests.evidence.campaigns import LOSSES, WANTED, Line

KEPT = ROOT / "tests" / "evidence" / "played.jsonl"


def line_of(told: Mapping[str, Any], commit: str, kind: str) -> dict[str, Any]:
    """What is kept of the JSON that `oarlock chaos` ends with."""
    faults, had = told["faults"], told["opportunities"]
    only = faults["only"]
    losses = {only: faults["total"] - faults["idle"]} if only in LOSSES else faults["lost"]
    return {
        "kind": kind,
        "commit": commit,
        "seed": told["seed"],
        "asked": faults["asked"],
        "verdict": told["verdict"],
        **{fault: faults[fault] for fault in WANTED},
        "redis_losses": sum(losses.values()),
        "losses": losses,
        "points": faults["points"],
        "writes_in_flight": had["kills_with_write_in_flight"],
        "violations": sum(told[PLURALS[each]] for each in KINDS),
        "settle_s": told["recovery"]["settle_s"],
        "lasted_s": told["duration_s"],
        "times": faults["total"],
        "struck": sum(faults["struck"].values()),
        **{what: had[what] for what in ("creates", "deletes", "already_exists", "reissued_writes", "epochs")},
        "stale": had["stale_nonce_refusals"],
        "judged": had["progress_checks"],
        "claimed_again_ms": told["recovery"]["worker_kill_to_claim_ms"]["p99"],
    }


def line_of_simulation(kept: Mapping[str, Any], commit: str, failed: bool) -> dict[str, Any]:
    """What is kept of a search of `tests.simulation`."""
    return {
        "kind": "simulation",
        "commit": commit,
        "seed": kept["first"],
        "seeds": kept["next"] - kept["first"],
        "verdict": "fail" if failed else "pass",
        "violations": int(failed),
        "churn_h": round(kept["seen"].get("ms of churn", 0) / 3_600_000, 3),
    }


def read(kept: Path = KEPT) -> list[dict[str, Any]]:
    """Every campaign so far, in the order in which they were played."""
    return [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []


def append(line: Line, kept: Path = KEPT) -> None:
    with kept.open("a") as file:
        file.write(json.dumps(line) + "\n")


def next_seed(lines: Sequence[Line], first: int) -> int:
    """The seed after the last that was played."""
    return max((line["seed"] + line.get("seeds", 1) for line in lines), default=first)
