"""A small campaign for real: processes, faults, recorders and verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oarlock.chaos.judge.evidence.sightings import NODE_QUEUE, QUEUE_OF_KIND

SETTINGS = {"OARLOCK_LEASE_MS": "2000", "OARLOCK_RENEW_EVERY_MS": "600", "OARLOCK_REQUEST_TIMEOUT_MS": "1000"}


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.timeout(150)
@pytest.mark.xdist_group("chaos")
def test_fifteen_faults(tmp_path: Path) -> None:
    root = tmp_path / "evidence"
    command = [
        sys.executable,
        "-m",
        "oarlock.cli",
        "chaos",
        "--duration",
        "20",
        "--faults",
        "15",
        "--seed",
        "11",
    ]
    done = subprocess.run(
        [*command, "--state-dir", str(root), "--workers", "4"],
        env={**os.environ, **SETTINGS},
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
    )
    assert done.stdout, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert told["verdict"] == "pass"
    assert told["evidence_gaps"] == 0
    assert told["faults"]["redis_losses"] == 1
    assert told["opportunities"]["epochs"] == 2
    assert told["settings"]["drain_ms"] == 5_000
    assert all(told["by_kind"][queue]["claims"] > 0 for queue in (*QUEUE_OF_KIND.values(), NODE_QUEUE))
    assert all(told["by_kind"][queue]["creates"] > 0 for queue in QUEUE_OF_KIND.values())
    assert told["opportunities"]["rolling_deletes"] > 0
    assert "seed 11" in done.stdout.splitlines()[0]
    assert not _left(root), "processes are left over"
    assert json.loads((root / "verdict.json").read_text()) == told


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.timeout(150)
@pytest.mark.xdist_group("chaos")
def test_one_sort_of_fault_alone(tmp_path: Path) -> None:
    root = tmp_path / "evidence"
    command = [
        sys.executable,
        "-m",
        "oarlock.cli",
        "chaos",
        "--only",
        "redis-cut",
        "--duration",
        "16",
        "--seed",
        "11",
    ]
    done = subprocess.run(
        [*command, "--faults", "1", "--state-dir", str(root), "--workers", "4", "-o", "json"],
        env={**os.environ, **SETTINGS},
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
    )
    assert done.stdout, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert told["verdict"] == "pass"
    assert told["faults"]["struck"]["redis-cut"] > 0
    assert told["faults"]["worker_kills"] == 0
    assert not _left(root), "processes are left over"


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
