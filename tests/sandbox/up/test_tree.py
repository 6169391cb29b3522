"""The process tree of `oarlock up` where the machine has no more to give: what runs goes on, what does not is tried
again.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oarlock.sandbox.up import program, state_dir
from oarlock.sandbox.up import tree as tree_module
from oarlock.sandbox.up.program import Program, ProgramChild
from oarlock.sandbox.up.state_dir import StateDir
from oarlock.sandbox.up.tree import Tree
from oarlock.workers.process import child


class ScriptedRedis:
    """Ends when it is told, and starts again as often as it is allowed to."""

    def __init__(self) -> None:
        self.alive, self.pid, self.starts = True, os.getpid(), 0
        self.refusals: list[Exception] = []

    def start(self) -> None:
        self.starts += 1
        if self.refusals:
            raise self.refusals.pop(0)
        self.alive = True

    def stop(self) -> None:
        self.alive = False


@pytest.fixture
def redis() -> ScriptedRedis:
    return ScriptedRedis()


@pytest.fixture
def tree(tmp_path: Path, redis: ScriptedRedis, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    monkeypatch.setattr(child, "NOT_STARTED_PAUSE_MS", 1)
    state = StateDir.take(tmp_path / "state")
    one = Tree(state, redis)
    yield one
    one.stop()
    state.clear()


def pausing() -> int:
    signal.pause()
    return 0


def test_a_program_that_the_system_refuses_to_start_is_tried_again(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused, fork = iter([errno.EAGAIN, errno.EAGAIN]), program.fork_process

    def refusing(*args: Any, **options: Any) -> Any:
        if code := next(refused, 0):
            raise OSError(code, os.strerror(code))
        return fork(*args, **options)

    monkeypatch.setattr(program, "fork_process", refusing)
    one = ProgramChild(Program("supervisor", "one", ["-"], report=True, life=pausing), tmp_path / "state" / "logs", 0)
    open_before = len(os.listdir("/proc/self/fd"))
    tree.add([one])
    assert one.pid == 0
    tree.watch(lambda: one.pid > 0)
    assert len(os.listdir("/proc/self/fd")) == open_before + 1, "its report, and none of the starts before"
    assert caplog.text.count("event=not_started") == 1


def test_a_redis_that_cannot_be_started_again_ends_nothing_else(
    tree: Tree, redis: ScriptedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    redis.alive, redis.refusals = False, [full, full]
    tree.watch(lambda: redis.alive)
    assert redis.starts == 3
    assert caplog.text.count("event=not_started") == 1


def test_what_runs_is_told_once_there_is_room_again(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused, write = iter([True, True, True]), state_dir.write_file

    def refusing(path: Path, text: str) -> None:
        if next(refused, False):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, text)

    monkeypatch.setattr(state_dir, "write_file", refusing)
    monkeypatch.setattr(tree_module, "TELL_AGAIN_S", 0.001)
    tree.add([ProgramChild(Program("ingestor", "one", ["-"], life=pausing), tmp_path / "state" / "logs", 0)])
    told = StateDir(tmp_path / "state")
    tree.watch(lambda: [each.name for each in told.read_processes()] == ["redis", "one"])
    assert caplog.text.count("event=untold") == 1
