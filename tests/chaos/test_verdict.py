"""From findings to the word, the numbers and the exit: a run without opportunities is no evidence."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from oarlock.chaos.faults.points import POINTS
from oarlock.chaos.judge.checker import KINDS, Findings, check
from oarlock.chaos.judge.evidence.evidence import End, Violation
from oarlock.chaos.judge.evidence.sightings import NODE_QUEUE, QUEUE_OF_KIND
from oarlock.chaos.judge.recovery import percentile
from oarlock.chaos.judge.timeline import timeline
from oarlock.chaos.judge.verdict import PLURALS, Run, Verdict, least
from oarlock.chaos.judge.verdict import POINTS as NAMED
from oarlock.chaos.record.saved import NoEvidence, read_saved, write_notes
from oarlock.cli.run.chaos import chaos
from tests.chaos.daemon_story import DaemonStory
from tests.chaos.story import TASK, Story

PLENTY = 1_000_000


def run(**more: Any) -> Run:
    blows = {"worker": 240, "ingestor": 30, "supervisor": 15, "pause": 10, "pause host": 7, "redis": 2, "flushall": 3}
    facts: dict[str, Any] = {
        "seed": 7,
        "duration_s": 240.0,
        "asked": 300,
        "blows": blows,
        "missed": {},
        "api": {"dropAnswer": 3},
        "load": {"scaled": 9},
        "settings": {"lease_ms": 3_000},
        "settle_s": 1.5,
        "state_dir": "/nowhere",
    }
    return Run(**{**facts, **more})


def findings(*violations: Violation, gaps: tuple[str, ...] = (), **opportunities: int) -> Findings:
    had = {name: PLENTY for name in least(run()) if name != "faults"}
    return Findings(list(violations), list(gaps), {**had, **opportunities}, Counter(), [10.0, 30.0, 20.0], [], [0.5])


def test_a_run_with_opportunities_and_without_violations_passes() -> None:
    verdict = Verdict.of(run(), findings())
    told = verdict.as_json()
    assert told["verdict"] == "pass"
    assert all(told[PLURALS[kind]] == 0 for kind in KINDS)
    assert told["faults"]["total"] == 300
    assert told["faults"]["redis_losses"] == 5
    assert told["recovery"]["worker_kill_to_claim_ms"] == {"count": 3, "p50": 20.0, "p99": 30.0, "max": 30.0}
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_violation_fails(kind: str) -> None:
    verdict = Verdict.of(run(), findings(Violation(kind, TASK, 1.0, 2, "text")))
    assert verdict.word == "fail"
    assert verdict.as_json()[PLURALS[kind]] == 1


@pytest.mark.parametrize("name", sorted(set(least(run())) - {"faults"}))
def test_too_few_opportunities_are_no_evidence(name: str) -> None:
    verdict = Verdict.of(run(), findings(**{name: least(run())[name] - 1}))
    assert verdict.word == "no evidence"
    assert list(verdict.as_json()["too_few"]) == [name]


def test_more_unproved_writes_than_a_loss_of_redis_explains_fail() -> None:
    """Each could be one that was never announced."""
    for losses, unproved, word in ((0, 0, "pass"), (0, 1, "fail"), (5, 125, "pass"), (5, 126, "fail")):
        short = run(blows={**run().blows, "redis": 0, "flushall": 0})
        verdict = Verdict.of(short, findings(epochs=1 + losses, unproved_writes=unproved))
        assert verdict.word == word, (losses, unproved)
    assert verdict.as_json()["too_many"] == {"unproved_writes": {"had": 126, "allowed": 125}}
    shown = Console(file=io.StringIO(), width=200)
    shown.print(verdict.table())
    assert "too many: 125 allowed" in shown.file.getvalue()  # type: ignore[attr-defined]


def test_a_second_fleet_has_to_have_written() -> None:
    beside = run(second_fleet=True, blows={**run().blows, "second fleet": 1})
    assert Verdict.of(beside, findings(second_fleet_creates=1, second_fleet_already_exists=1)).word == "pass"
    short = Verdict.of(beside, findings(second_fleet_creates=1, second_fleet_already_exists=0))
    assert short.too_few == {"second_fleet_already_exists": (0, 1)}
    told = Verdict.of(beside, findings(second_fleet_creates=0, second_fleet_already_exists=0)).as_json()
    assert told["verdict"] == "no evidence"
    assert "nodes_down_by_us" in told["not_judged"]
    assert told["faults"]["second_fleets"] == 1
    assert told["faults"]["total"] == 300
    assert Verdict.of(run(), findings()).as_json()["not_judged"] == ""


def test_what_was_done_for_each_kind_is_told() -> None:
    found = DaemonStory().covers().check()
    verdict = Verdict.of(run(), found)
    assert verdict.as_json()["by_kind"]["daemonset"]["creates"] == 4
    console = Console(width=200, file=io.StringIO())
    console.print(verdict.kinds_table())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert rows["QUEUE"][:2] == ["CREATES", "DELETES"]
    assert rows["daemonset"][:2] == ["4", "0"]
    assert set(rows) == {"QUEUE", *QUEUE_OF_KIND.values(), NODE_QUEUE}


def test_a_timeline_of_a_daemon_set() -> None:
    story = DaemonStory().covers().roll().takes("web-n1", "web-n2").node("n3", taint="NoExecute")
    evidence = story.evidence()
    (violation,) = (each for each in check(evidence).violations if each.kind == "node_down")
    text = "\n".join(timeline(evidence, violation))
    for word in (
        "watch    rv=",
        "owner version 1",
        "pod web-n2 on n2 of version 0",
        "node n3 labels none, taints held",
    ):
        assert word in text
    assert "revision web-1 number 2" in text


def test_too_few_faults_are_no_evidence() -> None:
    verdict = Verdict.of(run(blows={"worker": 100, "pause host": 3, "redis": 2}), findings())
    assert verdict.word == "no evidence"
    assert verdict.as_json()["too_few"]["faults"] == {"had": 102, "needed": 270}


def test_missing_evidence_is_no_evidence_and_does_not_hide_a_violation() -> None:
    assert Verdict.of(run(), findings(gaps=("something",))).word == "no evidence"
    assert Verdict.of(run(), findings(Violation("overlap", "", 1.0, 0, "t"), gaps=("something",))).word == "fail"


def test_a_run_without_any_fault_is_no_evidence() -> None:
    empty = Findings([], [], dict.fromkeys(least(run()), 0), Counter())
    assert Verdict.of(run(asked=0, blows={}), empty).word == "no evidence"


def test_percentiles() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0], 0.99) == 3.0
    assert [percentile(list(range(1, 101)), share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]


def at_points(**times: int) -> Run:
    points = dict.fromkeys(POINTS, 25) | {name.replace("_", "-"): count for name, count in times.items()}
    points = {name: count for name, count in points.items() if count}
    return run(mix="points", duration_s=101.0, asked=500, blows={"worker": sum(points.values())}, points=points)


def test_kills_at_named_points_are_evidence_of_each_point() -> None:
    assert Verdict.of(at_points(), findings()).word == "pass"
    for times, short in (({"create_sent": 0}, "points"), ({"create_sent": 11}, "kills_at_each_point")):
        verdict = Verdict.of(at_points(**times), findings())
        assert verdict.word == "no evidence"
        assert short in verdict.too_few
    assert len(POINTS) == NAMED


def test_what_the_load_does_is_held_against_the_time_and_not_against_the_kills() -> None:
    needed = least(at_points())
    assert needed["size_writes"] == 101 // 2
    assert needed["kills_with_write_in_flight"] == 500 // 4
    of_losses = least(run(mix="losses", blows={"flushall": 10, "redis": 10}))
    nobody_was_killed = ("late_commits", "kills_with_write_in_flight", "reissued_writes")
    assert [of_losses[what] for what in nobody_was_killed] == [0, 0, 0]
    assert of_losses["epochs"] == 21


# -- evidence on disk


def save(root: Path, story: Story) -> None:
    """A story as a campaign would leave it; its trace is empty, which is to be found out."""
    evidence = story.evidence()
    (root / "up").mkdir()
    (root / "up" / "audit.log").write_text("")
    (root / "monitor.log").write_text("")
    lines = []
    for seen in evidence.history:
        resource = {"PodSeen": "pods", "OwnerSeen": "replicasets"}[type(seen).__name__]
        lines.append(json.dumps([resource, list(seen)]))
    (root / "journal.jsonl").write_text("\n".join(lines) + "\n")
    write_notes(root, run(), evidence.facts, list(evidence.blows), 100, ["a gap"], [End(5.0, "supervisor", 9)])


def test_what_was_saved_is_read(tmp_path: Path) -> None:
    story = Story(2).fill("web-a", "web-b").claim().dies("w-1", "w-2")
    save(tmp_path, story)
    told, evidence = read_saved(tmp_path)
    assert told == run()
    assert list(evidence.history) == story.history
    assert [type(seen) for seen in evidence.history] == [type(seen) for seen in story.history]
    assert list(evidence.blows) == story.blows
    assert (evidence.from_rv, evidence.gaps, evidence.ends) == (100, ["a gap"], [End(5.0, "supervisor", 9)])


def test_judging_saved_evidence_exits_1_unless_it_passes(tmp_path: Path) -> None:
    save(tmp_path, Story(2).fill("web-a", "web-b"))
    result = CliRunner().invoke(chaos, ["--judge", str(tmp_path), "-o", "json"], standalone_mode=False)
    assert result.return_value == 1
    told = json.loads(result.output.splitlines()[-1])
    assert told["verdict"] == "fail"
    assert told["lost_keys"] > 0  # no claim was seen at all
    assert told["evidence_gaps"] > 0
    assert json.loads((tmp_path / "verdict.json").read_text()) == told


def test_a_directory_without_a_campaign(tmp_path: Path) -> None:
    with pytest.raises(NoEvidence, match="no complete campaign"):
        read_saved(tmp_path)
    result = CliRunner().invoke(chaos, ["--judge", str(tmp_path)])
    assert result.exit_code == 2
    assert result.output.count("\n") == 1


def test_a_timeline_shows_all_recorders() -> None:
    story = Story(1).fill("web-a").claim("w-1").record(("create", "web-b")).creates("web-b").dies().release()
    story.claim("w-2").finish(("create", "web-b"))
    evidence = story.evidence()
    lines = timeline(evidence, Violation("over_creation", TASK, story.requests[-1].received_s, 0, ""))
    text = "\n".join(lines)
    for word in (
        "redis    claimed",
        "holder=w-2",
        "api      worker: create pods web-b -> 201",
        "watch    rv=",
        "fault    worker",
    ):
        assert word in text
    assert lines == sorted(lines)
    assert len(timeline(evidence, Violation("overlap", TASK, story.at_s, 0, ""), 3)) == 3
