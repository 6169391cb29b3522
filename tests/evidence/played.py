"""What has been played, a line a campaign, and the table of docs/evidence.md that is made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oarlock.chaos.judge.checker import KINDS
from oarlock.chaos.judge.verdict import PLURALS
from tests import ROOT

KEPT = ROOT / "tests" / "evidence" / "played.jsonl"
PAGE = ROOT / "docs" / "evidence.md"
BEGIN = "<!-- the table is made from tests/evidence/played.jsonl: python -m tests.evidence table -->\n"
END = "<!-- end of the table -->\n"
WANTED = {
    "worker_kills": 10_000,
    "supervisor_kills": 1_000,
    "ingestor_kills": 1_000,
    "pauses": 1_000,
    "redis_losses": 750,
}
"""Fault -> how many of it are to be played in all."""


def line_of(told: Mapping[str, Any], commit: str) -> dict[str, Any]:
    """What is kept of the JSON that `oarlock chaos` ends with."""
    return {
        "commit": commit,
        "seed": told["seed"],
        "asked": told["faults"]["asked"],
        "verdict": told["verdict"],
        **{fault: told["faults"][fault] for fault in WANTED},
        "writes_in_flight": told["opportunities"]["kills_with_write_in_flight"],
        "violations": sum(told[PLURALS[kind]] for kind in KINDS),
        "settle_s": told["recovery"]["settle_s"],
    }


def read(kept: Path = KEPT) -> list[dict[str, Any]]:
    """Every campaign so far, in the order in which they were played."""
    return [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []


def append(line: Mapping[str, Any], kept: Path = KEPT) -> None:
    with kept.open("a") as file:
        file.write(json.dumps(line) + "\n")


def next_seed(lines: Sequence[Mapping[str, Any]], first: int) -> int:
    """The seed after the last that was played."""
    return max((line["seed"] + 1 for line in lines), default=first)


def totals(lines: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Fault -> how many were played. A campaign without evidence does not count."""
    return {fault: sum(line[fault] for line in lines if line["verdict"] != "no evidence") for fault in WANTED}


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """A row for the campaigns of each commit, and one for all."""
    heads = [fault.replace("_", " ") for fault in WANTED]
    rows = [f"| commit | campaigns | pass | {' | '.join(heads)} | with a write under way | violations |"]
    rows.append("|---" * (len(heads) + 5) + "|")
    commits = list(dict.fromkeys(line["commit"] for line in lines))
    for name, of in [*((each, [line for line in lines if line["commit"] == each]) for each in commits), ("all", lines)]:
        played = totals(of)
        cells = [f"{played[fault]:,}" + (f" of {WANTED[fault]:,}" if name == "all" else "") for fault in WANTED]
        passed = sum(line["verdict"] == "pass" for line in of)
        sums = [f"{sum(line[what] for line in of):,}" for what in ("writes_in_flight", "violations")]
        rows.append(f"| {name} | {len(of)} | {passed} | {' | '.join([*cells, *sums])} |")
    return "\n".join(rows) + "\n"


def page(text: str, lines: Sequence[Mapping[str, Any]]) -> str:
    """The page with its table made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table(lines)}\n{END}{tail}"
