"""A worker that a signal stopped is told from one that works, however long that takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarlock.workers.supervisor.standstill import LOOK_EVERY_MS, Standstill
from tests.workers.fleet_rig import until

LIMIT_MS = 5_000
PID = 71


def looks(path: Path, states: str) -> list[bool]:
    """What is said at one look after another, at which the kernel tells these states."""
    standstill, said = Standstill(path), []
    (path / str(PID)).mkdir()
    for number, state in enumerate(states):
        (path / str(PID) / "stat").write_text(f"{PID} (a (b) T) {state} 1 1 1")
        said.append(standstill.lasts(PID, number * LOOK_EVERY_MS, LIMIT_MS))
    return said


def test_it_lasts_once_each_look_of_a_lease_found_it_stopped(tmp_path: Path) -> None:
    assert looks(tmp_path, "T" * 12) == [False] * 10 + [True] * 2


@pytest.mark.parametrize("state", "RSDZtX")
def test_no_other_state_is_a_standstill(tmp_path: Path, state: str) -> None:
    """It computes, waits, is in the disk's hands, has ended, or is looked at by a debugger."""
    assert not any(looks(tmp_path, state * 40))


def test_a_worker_that_went_on_in_between_is_well(tmp_path: Path) -> None:
    assert not any(looks(tmp_path, ("T" * 10 + "S") * 3))


def test_a_process_that_has_gone_is_no_standstill(tmp_path: Path) -> None:
    assert not any(Standstill(tmp_path).lasts(PID, now_ms, LIMIT_MS) for now_ms in range(0, 60_000, LOOK_EVERY_MS))


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Busy in code of its own."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as running:
        yield running
        running.kill()


def test_what_a_real_kernel_tells(process: subprocess.Popen[bytes]) -> None:
    now_ms, standstill = 0, Standstill()

    def lasts() -> bool:
        nonlocal now_ms
        now_ms += LIMIT_MS
        return standstill.lasts(process.pid, now_ms, LIMIT_MS)

    assert [lasts(), lasts(), lasts()] == [False] * 3
    os.kill(process.pid, signal.SIGSTOP)
    until(lasts)
    os.kill(process.pid, signal.SIGCONT)
    until(lambda: not lasts())
