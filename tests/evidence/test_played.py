"""What is kept of campaigns of kills, and that docs/evidence.md says no more than that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oarlock.chaos.judge.checker import Findings
from oarlock.chaos.judge.verdict import Run, Verdict
from tests.evidence import __main__ as command
from tests.evidence import played
from tests.evidence.played import PAGE, append, line_of, next_seed, page, read, totals

BLOWS = {"worker": 240, "ingestor": 30, "supervisor": 15, "pause": 10, "redis": 3, "flushall": 2}


def told(seed: int, **fields: Any) -> dict[str, Any]:
    """The JSON of a campaign, as the judge writes it."""
    run = Run(seed, 240.0, 300, BLOWS, {}, {}, {}, {}, 4.2, "")
    found = Findings([], [], {"kills_with_write_in_flight": 200}, {})
    return {**Verdict(run, found).as_json(), **fields}


def test_the_page_has_what_was_played() -> None:
    assert PAGE.read_text() == page(PAGE.read_text(), read()), "python -m tests.evidence table writes it anew"


def test_a_line_is_what_the_judge_said(tmp_path: Path) -> None:
    kept = tmp_path / "played.jsonl"
    append(line_of(told(1_001, verdict="pass"), "abc1234"), kept)
    append(line_of(told(1_002, verdict="fail", over_creations=2, lost_keys=1), "abc1234"), kept)
    append(line_of(told(1_003, verdict="no evidence"), "def5678"), kept)
    lines = read(kept)
    assert [(line["seed"], line["verdict"], line["violations"]) for line in lines] == [
        (1_001, "pass", 0),
        (1_002, "fail", 3),
        (1_003, "no evidence", 0),
    ]
    assert next_seed(lines, 7) == 1_004
    assert totals(lines) == {
        "worker_kills": 480,
        "supervisor_kills": 30,
        "ingestor_kills": 60,
        "pauses": 20,
        "redis_losses": 10,
    }
    rows = played.table(lines).splitlines()[2:]
    assert rows[0] == "| abc1234 | 2 | 1 | 480 | 30 | 60 | 20 | 10 | 400 | 3 |"
    assert rows[2].startswith("| all | 3 | 1 | 480 of 10,000 | 30 of 1,000 |")


def test_it_goes_on_with_the_next_seed_and_stops_at_what_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, seeds = tmp_path / "played.jsonl", list[int]()

    def play(seed: int, faults: int) -> dict[str, Any]:
        seeds.append(seed)
        return told(seed, verdict="fail" if seed == 1_003 else "pass")

    monkeypatch.setattr(command, "play", play)
    monkeypatch.setattr(command, "read", lambda: read(kept))
    monkeypatch.setattr(command, "append", lambda line: append(line, kept))
    monkeypatch.setattr(command, "_git", lambda *words: "abc1234" if words[0] == "log" else "")
    assert command.main(["play", "--slices", "2"]) == 0
    assert command.main(["play", "--slices", "5"]) == 1
    assert seeds == [1_001, 1_002, 1_003]
    assert capsys.readouterr().out.splitlines()[-1].startswith("seed 1003: fail, 0 violations; in all 720 of 10,000 ")


def test_what_is_not_committed_is_not_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_git", lambda *words: " M broker/keys.py")
    assert command.main(["play"]) == 2
    assert capsys.readouterr().err.startswith("evidence: there are changes that no commit has")
