"""What is kept of campaigns, and that docs/evidence.md says no more than that."""

from __future__ import annotations

from pathlib import Path

from oarlock.chaos.faults.points import POINTS
from tests.evidence import lines as made
from tests.evidence.page import PAGE, alone, by_commit, by_fault, by_point, page
from tests.evidence.played import append, line_of_simulation, next_seed, read


def test_the_page_has_what_was_played() -> None:
    assert PAGE.read_text() == page(PAGE.read_text(), read()), "python -m tests.evidence table writes it anew"


def test_a_line_is_what_the_judge_said(tmp_path: Path) -> None:
    kept = tmp_path / "played.jsonl"
    append(made.line(seed=1_001, verdict="pass"), kept)
    append(made.line(seed=1_002, verdict="fail", over_creations=2, lost_keys=1), kept)
    append(made.line(seed=1_003, verdict="no evidence", commit="def5678"), kept)
    lines = read(kept)
    assert [(line["seed"], line["verdict"], line["violations"]) for line in lines] == [
        (1_001, "pass", 0),
        (1_002, "fail", 3),
        (1_003, "no evidence", 0),
    ]
    assert next_seed(lines, 7) == 1_004
    assert lines[0]["losses"] == {"flushall": 2, "redis": 3}
    rows = by_commit(lines).splitlines()[2:]
    assert rows[0] == "| abc1234 | 2 | 1 | 480 | 30 | 60 | 20 | 10 | 400 | 0.0 | 3 |"
    assert rows[2].startswith("| all | 3 | 1 | 480 of 10,000 | 30 of 1,000 |"), "no evidence is no kill"


def test_a_loss_that_struck_nobody_does_not_count() -> None:
    line = made.of_one_loss("lost-tail", 12, idle=2)
    assert line["losses"] == {"lost-tail": 10}
    assert line["redis_losses"] == 10
    assert "| killed, back from a log without its end | 10 of 150 | 0 |" in by_fault([line])


def test_each_named_point_has_a_row() -> None:
    rows = by_point([made.of_points(25), made.of_points(5), made.of_points(3, verdict="no evidence")])
    assert "| a create of a pod is sent, and has no answer | `create-sent` | 30 of 500 |" in rows
    assert rows.count("30 of 500") == len(POINTS)
    assert by_point([made.line()]) == ""


def test_of_a_fault_alone_the_last_campaign_is_told() -> None:
    first = made.line("redis-cut", 1_010, "aaaaaaa", only="redis-cut", blows={"redis-cut": 3}, struck={"redis-cut": 40})
    rows = alone([first, {**first, "seed": 1_020, "commit": "bbbbbbb"}]).splitlines()[2:]
    assert len(rows) == 1
    assert rows[0].startswith("| `redis-cut` | bbbbbbb | 1020 | 240 s | 3 | 40 |")


def test_a_simulation_is_told_in_hours() -> None:
    kept = {"first": 1_005, "next": 1_205, "seen": {"ms of churn": 7_200_000}}
    line = line_of_simulation(kept, made.COMMIT, failed=False)
    assert (line["churn_h"], line["seeds"], line["verdict"]) == (2.0, 200, "pass")
    assert next_seed([line], 7) == 1_205
    assert by_commit([line]).splitlines()[-1].endswith("| 2.0 of 24 | 0 |")


def test_campaigns_are_told_with_how_long_they_took_to_rest() -> None:
    lines = [made.of_points(25, settle_s=settle_s) for settle_s in (1.0, 9.0, 3.0)]
    assert "| points | 3 | 3 | 3.0 s, 9.0 s | 0 |" in by_fault(lines)
