"""What comes next, what ends the play, and that it goes on where it was stopped."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.evidence import __main__ as command
from tests.evidence import lines as made
from tests.evidence import player
from tests.evidence.campaigns import ALONE, CAMPAIGNS, Campaign, Line, following
from tests.evidence.player import CannotPlay, Player, carry_out

EACH_ALONE = [made.line(kind, blows={}) for kind in ALONE]
DONE = [
    *(made.of_points(500), made.of_hosts(1_000), made.of_losses(150)),
    *(made.of_one_loss(kind, 150) for kind in ("lost-tail", "sentinel", "old-master")),
    *(made.of_simulation(24.0), *EACH_ALONE),
]


def following_kind(lines: list[Line], running: tuple[str, ...] = (), commit: str = made.COMMIT) -> str:
    found = following(lines, running, commit)
    return found.kind if found is not None else ""


@pytest.mark.parametrize(
    ("fewer", "kind"),
    [
        pytest.param(made.of_points(499), "points", id="one kill too few at each point"),
        pytest.param(made.of_hosts(999), "hosts", id="one kill of a supervisor too few"),
        pytest.param(made.of_losses(149), "losses", id="one loss too few"),
        pytest.param(made.of_one_loss("old-master", 150, idle=1), "old-master", id="one that struck nobody"),
        pytest.param(made.of_points(500, verdict="no evidence"), "points", id="no evidence counts for nothing"),
        pytest.param(made.of_simulation(23.9), "simulation", id="some minutes too few"),
    ],
)
def test_what_has_not_reached_its_goal_comes_next(fewer: Line, kind: str) -> None:
    assert following_kind(DONE) == ""
    rest = [line for line in DONE if line["kind"] != kind]
    assert following_kind([*rest, fewer]) == kind


def test_one_point_that_lags_behind_is_enough() -> None:
    lagging = made.of_points(500)
    lagging["points"]["claim-beside"] = 420
    assert following_kind([*DONE[1:], lagging]) == "points"


def test_the_kind_that_is_the_furthest_from_its_goal_comes_next() -> None:
    half = [made.of_points(250), made.of_hosts(400), made.of_losses(75), *DONE[3:]]
    assert following_kind(half) == "hosts"
    assert following_kind(half, running=("hosts",)) == "hosts", "440 of 1,000 are less than half"
    assert following_kind(half, running=("hosts", "hosts", "hosts")) == "points"


def test_each_fault_is_played_alone_once_a_commit() -> None:
    assert following_kind(DONE, commit="another") == next(iter(ALONE))
    assert following_kind(DONE, running=tuple(ALONE), commit="another") == ""
    assert following_kind(DONE[:-1]) == DONE[-1]["kind"]


class Stage:
    """Campaigns that play nothing; ``fails``: kinds that do not pass."""

    def __init__(self, **words: str) -> None:
        self.words, self.played = words, list[tuple[str, int]]()
        self.kept, self.told = list[Line](), list[str]()

    def carry_out(self, campaign: Campaign, seed: int, commit: str) -> Line:
        self.played.append((campaign.kind, seed))
        if campaign.kind == "simulation":
            return made.of_simulation(2.0, seed, player.SIMULATED_SEEDS, commit)
        verdict = self.words.get(campaign.kind, "pass")
        if verdict == "broken":
            raise CannotPlay("exit code 1: it said nothing")
        made_of: Any = {"points": made.of_points, "hosts": made.of_hosts, "losses": made.of_losses}
        if campaign.kind in made_of:
            return {**made_of[campaign.kind](25, seed=seed, verdict=verdict), "commit": commit}
        if campaign.kind in ALONE:
            return made.line(campaign.kind, seed, commit, verdict=verdict)
        return {**made.of_one_loss(campaign.kind, 12, seed=seed, verdict=verdict), "commit": commit}

    def play(self, slices: int, jobs: int = 1, only: str = "", lines: list[Line] | None = None) -> bool:
        self.kept = lines or []
        new = Player(self.kept, made.COMMIT, self.kept.append, self.told.append, self.carry_out)
        return new.play(slices, jobs, only)


def test_each_kind_has_its_share_and_a_seed_of_its_own() -> None:
    stage = Stage()
    assert stage.play(8)
    assert {kind for kind, _ in stage.played} == {each.kind for each in CAMPAIGNS} | {next(iter(ALONE))}
    seeds = [seed for _, seed in stage.played]
    assert len(set(seeds)) == 8
    assert seeds[0] == player.FIRST_SEED


def test_it_goes_on_where_it_stopped_until_all_is_played() -> None:
    stage = Stage()
    assert stage.play(1)
    assert stage.play(1 << 30, jobs=3, lines=list(stage.kept))
    assert following_kind(stage.kept) == ""
    assert len({line["seed"] for line in stage.kept}) == len(stage.kept)


def test_nothing_begins_after_a_failure() -> None:
    stage = Stage(hosts="fail")
    assert not stage.play(100)
    assert [kind for kind, _ in stage.played] == ["points", "hosts"]
    assert [line["verdict"] for line in stage.kept] == ["pass", "fail"], "the failure is kept, too"


def test_a_campaign_without_evidence_is_played_again_but_not_for_ever() -> None:
    stage = Stage(points="no evidence")
    assert not stage.play(100, only="points")
    assert len(stage.played) == player.NOTHING_IN_A_ROW_MAX


def test_what_cannot_be_played_is_told() -> None:
    stage = Stage(points="broken")
    assert not stage.play(100)
    assert stage.told == ["points: exit code 1: it said nothing"]
    assert stage.kept == []


def test_a_failure_is_kept_and_where_its_evidence_lies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        said = json.dumps(made.told(verdict="fail", overlaps=1, state_dir="/tmp/evidence", first=["overlap: two"]))
        assert options["env"]["OARLOCK_LEASE_MS"] == "2000"
        return subprocess.CompletedProcess(words, 1, f"progress\n{said}\n", "")

    monkeypatch.setattr(subprocess, "run", run)
    (hosts,) = (each for each in CAMPAIGNS if each.kind == "hosts")
    line = carry_out(hosts, 1_001, made.COMMIT)
    assert (line["verdict"], line["violations"], line["state_dir"]) == ("fail", 1, "/tmp/evidence")
    told, kept = list[str](), list[Line]()
    assert not Player([], made.COMMIT, kept.append, told.append, carry_out).play(1, 1, only="hosts")
    assert (kept[0]["first"], "state_dir" in kept[0]) == (["overlap: two"], False)
    assert told == ["hosts, seed 1001: fail, 1 violations, evidence in /tmp/evidence"]


def test_the_command_keeps_what_was_played_and_says_how_far_it_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stage, kept = Stage(), tmp_path / "played.jsonl"
    monkeypatch.setattr(command, "carry_out", stage.carry_out)
    monkeypatch.setattr(command, "_git", lambda *words: made.COMMIT if words[0] == "log" else "")
    for _ in range(2):
        assert command.main(["play", "--slices", "1", "--only", "points", "--kept", str(kept)]) == 0
    assert [seed for _, seed in stage.played] == [1_001, 1_002]
    assert len(kept.read_text().splitlines()) == 2
    assert "points, seed 1002: pass, 0 violations; points 10 %, hosts 0 %" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--slices", "0"], "--slices and --jobs are numbers from 1 on"),
        (["--only", "nothing"], "--only nothing: there are points, hosts, "),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["play", *words]) == 2
    assert said in capsys.readouterr().err


def test_what_is_not_committed_is_not_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_git", lambda *words: " M broker/keys.py")
    assert command.main(["play"]) == 2
    assert capsys.readouterr().err.startswith("evidence: there are changes that no commit has")
