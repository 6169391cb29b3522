"""The state directory: one owner, whole files, nothing left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oarlock.sandbox.up import state_dir
from oarlock.sandbox.up.state_dir import Process, StateDir, StateDirUnusable, is_alive


def elsewhere(code: str) -> str:
    """Run Python in another process: locks are a process's own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    state = StateDir.take(tmp_path / "s")
    look = "from pathlib import Path; from oarlock.sandbox.up.state_dir import StateDir; "
    look += f"s = StateDir(Path({str(state.root)!r}));"
    assert elsewhere(look + "print(s.owner_pid())") == str(os.getpid())
    told = elsewhere(look + "\ntry: StateDir.take(s.root)\nexcept Exception as error: print(error)")
    assert f"an `oarlock up` runs here already (pid {os.getpid()}); stop it with: oarlock down" in told
    state.clear()
    assert elsewhere(look + "print(s.owner_pid())") == "0"


def test_what_an_earlier_one_left_is_cleared_when_taken(tmp_path: Path) -> None:
    for name in ("kubeconfig", "redis-url", "processes.json", "audit.log"):
        (tmp_path / name).write_text("old")
    state = StateDir.take(tmp_path)
    assert not any((tmp_path / name).exists() for name in ("kubeconfig", "redis-url", "processes.json", "audit.log"))
    state.clear()


def test_of_a_given_directory_the_evidence_stays(tmp_path: Path) -> None:
    state = StateDir.take(tmp_path)
    state.audit_log.write_text("{}\n")
    state.write_redis_url("redis://x")
    state.write_processes([])
    state.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.log", "logs"]


def test_a_temporary_directory_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(state_dir.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(state_dir.tempfile, "tempdir", str(tmp_path))
    state = StateDir.take(None)
    assert state.root.parent == tmp_path
    assert oct(state.root.stat().st_mode)[-3:] == "700"
    state.clear()
    assert list(tmp_path.iterdir()) == []


def test_temporary_directories_of_killed_ones_are_swept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(state_dir.tempfile, "gettempdir", lambda: str(tmp_path))
    old, young, other = (tmp_path / name for name in (f"{state_dir.PREFIX}a", f"{state_dir.PREFIX}b", "else"))
    for path in (old, young, other):
        path.mkdir()
        os.utime(path, (0, 0) if path != young else None)
    state_dir.sweep_temporary()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([young.name, other.name])


def test_processes_as_they_were_written(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    assert state.read_processes() == []
    processes = [Process("api", 1, "api", started_ms=5), Process("worker", 2, "w-1", "w-1", 6)]
    state.write_processes(processes)
    assert state.read_processes() == processes
    assert [path.name for path in tmp_path.iterdir()] == ["processes.json"]


def test_a_pid_that_was_given_to_another_is_not_the_process() -> None:
    now_ms = time.time_ns() // 1_000_000
    assert is_alive(Process("x", os.getpid(), "x", started_ms=now_ms))
    assert not is_alive(Process("x", os.getpid(), "x", started_ms=now_ms - 86_400_000))
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(Process("x", child.pid, "x", started_ms=now_ms)), "a zombie has ended"
    child.wait()


def test_a_directory_one_may_not_write_to() -> None:
    with pytest.raises(StateDirUnusable, match="give a directory you may write to"):
        StateDir.take(Path("/proc/oarlock"))
