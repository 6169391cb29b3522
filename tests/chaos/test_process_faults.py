"""Whom the faults choose: hosts at work, none twice, and nobody while the fleet does not keep up."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from oarlock.chaos.faults import process_faults
from oarlock.chaos.faults.process_faults import ProcessFaults
from oarlock.chaos.faults.redis_view import RedisView
from oarlock.chaos.faults.schedule import Planned
from oarlock.chaos.rig.rig import Rig, Target

HOSTS = 3


class Fleet:
    """In place of a rig and of the look into Redis: a supervisor and two workers on each of three hosts.

    ``busy_host``: whose workers have writes in flight. ``lengths``: of all queues, look after look.
    """

    def __init__(self, busy_host: int | None = None, lengths: tuple[int, ...] = ()) -> None:
        self.busy_host, self.lengths = busy_host, list(lengths)

    def targets(self, role: str) -> list[Target]:
        if role == "supervisor":
            return [Target(role, 100 + host, f"s-{host}", host) for host in range(HOSTS)]
        return [
            Target(role, 10 * host + number, f"w-{host}-{number}", host) for host in range(HOSTS) for number in (1, 2)
        ]

    def check(self) -> None: ...

    def busy(self, among: dict[str, Target]) -> str | None:
        return next((name for name, each in among.items() if each.fleet == self.busy_host), None)

    def locks(self) -> list[Any]:
        return []

    def queued(self) -> int:
        return self.lengths.pop(0)


def faults_of(fleet: Fleet, queued_max: int = 0) -> ProcessFaults:
    return ProcessFaults(cast(Rig, fleet), cast(RedisView, fleet), 7, queued_max=queued_max)


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The signals that were sent; nobody gets one."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(process_faults.os, "kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.setattr(process_faults, "HUNT_S", 0.01)
    monkeypatch.setattr(process_faults, "HEAD_START_S", 0.0)
    monkeypatch.setattr(process_faults, "VICTIM_LIMIT_S", 0.05)
    return sent


def test_a_supervisor_whose_workers_have_writes_in_flight_is_killed(signals: list[tuple[int, int]]) -> None:
    faults = faults_of(Fleet(busy_host=2))
    faults.kill_any("supervisor")
    (blow,) = faults.blows
    assert (blow.pid, blow.holders) == (102, ("w-2-1", "w-2-2"))


def test_hosts_freeze_side_by_side_but_for_the_last(signals: list[tuple[int, int]]) -> None:
    faults = faults_of(Fleet(busy_host=1))

    async def play() -> None:
        await asyncio.gather(*(faults.pause(Planned(0.0, "pause", "host", 0.2)) for _ in range(HOSTS)))

    asyncio.run(play())
    assert len(faults.blows) == HOSTS - 1
    assert faults.missed == ["pause"], "one host has to go on"
    assert len({blow.pid for blow in faults.blows}) == HOSTS - 1, "none is frozen twice"
    assert 101 in {blow.pid for blow in faults.blows}, "the one at work is the first"


def test_a_fault_waits_while_the_fleet_does_not_keep_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_faults, "KEPT_UP_STEP_S", 0.0)
    fleet = Fleet(lengths=(60, 41, 40))
    faults, played = faults_of(fleet, queued_max=40), list[Planned]()

    async def play(end_s: float) -> None:
        now_s = asyncio.get_running_loop().time()
        async for planned in faults.due([Planned(0.0, "worker")], now_s, now_s + end_s):
            played.append(planned)

    asyncio.run(play(10.0))
    assert len(played) == 1
    assert fleet.lengths == []
    fleet.lengths = [60] * 1_000_000
    asyncio.run(play(0.01))
    assert faults.missed == ["worker"], "and it is left out where that lasts"
