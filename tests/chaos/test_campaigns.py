"""Small campaigns for real: processes, faults, recorders and verdict. One after the other: each needs both cores."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oarlock.chaos import stage
from oarlock.chaos.campaign import Campaign
from oarlock.chaos.faults.mixes import POINTS as MIX
from oarlock.chaos.faults.points import POINTS
from oarlock.chaos.judge.checker import Findings, check
from oarlock.chaos.judge.evidence.sightings import NODE_QUEUE, QUEUE_OF_KIND
from oarlock.chaos.options import Options
from oarlock.chaos.record.saved import read_saved

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(150)]


def test_fifteen_faults(tmp_path: Path) -> None:
    root = tmp_path / "evidence"
    settings = {"OARLOCK_LEASE_MS": "2500", "OARLOCK_RENEW_EVERY_MS": "800"}
    said, told = command(root, "--duration", "20", "--faults", "15", "--seed", "11", **settings)
    assert told["evidence_gaps"] == 0
    assert told["faults"]["redis_losses"] == 1
    assert told["opportunities"]["epochs"] >= 2  # more where a fault held up who began the second
    assert told["settings"]["drain_ms"] == 6_500
    assert all(told["by_kind"][queue]["claims"] > 0 for queue in (*QUEUE_OF_KIND.values(), NODE_QUEUE))
    assert all(told["by_kind"][queue]["creates"] > 0 for queue in QUEUE_OF_KIND.values())
    assert told["opportunities"]["rolling_deletes"] > 0
    assert "seed 11" in said.splitlines()[0]
    assert json.loads((root / "verdict.json").read_text()) == told


def test_one_sort_of_fault_alone(tmp_path: Path) -> None:
    flags = ("--only", "redis-cut", "--duration", "16", "--seed", "11", "--faults", "1", "-o", "json")
    _, told = command(tmp_path / "evidence", *flags)
    assert told["faults"]["struck"]["redis-cut"] > 0
    assert told["faults"]["worker_kills"] == 0


def command(root: Path, *flags: str, **environment: str) -> tuple[str, dict[str, Any]]:
    """What a campaign that passes and leaves no process says, and its verdict."""
    done = subprocess.run(
        [sys.executable, "-m", "oarlock.cli", "chaos", *flags, "--state-dir", str(root), "--workers", "4"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
    )
    assert done.stdout, done.stderr
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["verdict"] == "pass"
    assert not _left(root), "processes are left over"
    return done.stdout, told


def _left(root: Path) -> list[str]:
    """Command lines of processes that still name the directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(root) in words:
                found.append(words)
    return found


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
