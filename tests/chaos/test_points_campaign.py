"""Small campaigns of workers that kill themselves at named points: a sound fleet, and one that announces nothing."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from oarlock.chaos import stage
from oarlock.chaos.campaign import Campaign
from oarlock.chaos.faults.mixes import POINTS as MIX
from oarlock.chaos.faults.points import POINTS
from oarlock.chaos.judge.checker import Findings, check
from oarlock.chaos.options import Options
from oarlock.chaos.record.saved import read_saved
from oarlock.workers.process.settings import Settings

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(150),
    pytest.mark.xdist_group("chaos"),
]
SETTINGS = Settings(lease_ms=2_000, renew_every_ms=600, request_timeout_ms=1_000)


def play(root: Path, faults: int, duration_s: float) -> tuple[dict[str, int], Findings]:
    """Where how many workers killed themselves, and what the judge found."""
    options = Options(
        seed=11,
        duration_s=duration_s,
        faults=faults,
        nodes=5,
        workers=6,
        ingestors=2,
        root=root,
        settings=SETTINGS,
        mix=MIX,
    )
    asyncio.run(Campaign(options, lambda _: None).run())
    run, evidence = read_saved(root)
    return dict(run.points), check(evidence)


def test_workers_die_at_each_named_point_and_nothing_is_violated(tmp_path: Path) -> None:
    points, found = play(tmp_path, 2 * len(POINTS), 12.0)
    assert set(points) == set(POINTS)
    assert [f"{each.kind} {each.task}: {each.text}" for each in found.violations] == []
    assert found.gaps == []
    assert found.opportunities["kills_with_write_in_flight"] >= len(POINTS) // 4


def test_the_judge_finds_a_fleet_that_announces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (sys.executable, "-m", "tests.chaos.mutant_program", "oarlock.cli")
    monkeypatch.setattr(stage, "TRAPPED", program)
    _, found = play(tmp_path, len(POINTS), 6.0)
    assert found.count("unannounced_write") > 20
