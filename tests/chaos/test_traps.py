"""A worker that steps into a trap kills itself there, and the campaign is told of it; no other process is hurt."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oarlock.chaos.faults import point_kills
from oarlock.chaos.faults.point_kills import PointKills
from oarlock.chaos.faults.points import POINTS
from oarlock.chaos.faults.traps import Traps


def end_of(life: Callable[[], object]) -> int:
    """What ends a child that lives this life: 0, or minus the signal."""
    pid = os.fork()
    if pid == 0:
        life()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def visiting(traps: Traps, point: str, times: int, holder: str = "w-1") -> Callable[[], None]:
    def life() -> None:
        traps.holder = holder
        for _ in range(times):
            traps.reached(point)

    return life


def test_the_visit_that_a_trap_waits_for_is_the_last(tmp_path: Path) -> None:
    traps, before_s = Traps(tmp_path), time.time()
    traps.set("create-sent", 3)
    assert end_of(visiting(traps, "create-sent", 2)) == 0, "two visits are not the third"
    assert end_of(visiting(traps, "delete-sent", 9)) == 0, "another point"
    assert traps.is_set("create-sent")
    assert end_of(visiting(traps, "create-sent", 1, "w-2")) == -signal.SIGKILL
    assert not traps.is_set("create-sent")
    (death,) = traps.new_deaths()
    assert (death.holder, death.point) == ("w-2", "create-sent")
    assert before_s <= death.at_s <= time.time()
    assert traps.new_deaths() == []
    assert end_of(visiting(traps, "create-sent", 9)) == 0, "it strikes once"


def test_only_a_worker_dies(tmp_path: Path) -> None:
    traps = Traps(tmp_path)
    traps.set("claim-sent", 1)
    assert end_of(visiting(traps, "claim-sent", 9, holder="")) == 0
    assert traps.clear("claim-sent")
    assert not traps.clear("claim-sent")


def test_processes_that_know_the_folder_share_the_traps(tmp_path: Path) -> None:
    def life() -> None:
        visiting(Traps(tmp_path), "waiting", 1)()

    Traps(tmp_path).set("waiting", 1)
    assert end_of(life) == -signal.SIGKILL
    assert [death.point for death in Traps(tmp_path).new_deaths()] == ["waiting"]


def test_a_kill_at_a_point_is_a_blow(tmp_path: Path) -> None:
    traps = Traps(tmp_path)
    kills = PointKills(Traps(tmp_path), seed=7)

    async def play() -> bool:
        killed = asyncio.create_task(kills.kill("finish-sent"))
        while not traps.is_set("finish-sent"):
            await asyncio.sleep(0)
        assert end_of(visiting(traps, "finish-sent", point_kills.VISITS_MAX)) == -signal.SIGKILL
        return await killed

    assert asyncio.run(play())
    (blow,) = kills.blows()
    assert (blow.kind, blow.holders, blow.why, blow.until_s) == ("worker", ("w-1",), "finish-sent", 0.0)


def test_a_trap_that_nobody_meets_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_kills, "LIMIT_S", 0.02)
    kills = PointKills(Traps(tmp_path), seed=7)
    assert not asyncio.run(kills.kill("claim-read"))
    assert not any(Traps(tmp_path).is_set(point) for point in POINTS)
    assert kills.blows() == []
