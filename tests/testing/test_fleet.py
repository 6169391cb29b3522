"""The parts of a fleet in one process, alone: what its data look like to an ingestor, and its lease thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from oarlock.broker.values.claims import Batch, ClaimLimits, LoadSpec
from oarlock.broker.values.errors import EpochOver
from oarlock.testing.clock import MovableClock
from oarlock.testing.fleet.data import MemoryData
from oarlock.testing.fleet.lease_thread import LeaseThread
from oarlock.workers.process.settings import Settings
from oarlock.workers.supervisor.lease_manager import LeaseManager

QUEUE, KEY = "replicaset", "default/web"
SPECS = [LoadSpec(QUEUE, "replicasets", ())]
SELDOM = Settings(lease_ms=120_000, renew_every_ms=30_000)
"""A lease thread that looks by itself only every 30 s."""


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def data(clock: MovableClock) -> MemoryData:
    found = MemoryData(clock)
    found.bootstrap(1)
    found.broker(found.look()).open([])
    return found


@pytest.fixture
def leases(data: MemoryData, clock: MovableClock) -> Iterator[LeaseThread]:
    """A running one, whose first look is over."""
    broker, timer = data.lease_broker(data.look())
    manager = LeaseManager(broker, timer, SELDOM, clock)
    manager.register("w1", "s", [QUEUE])
    manager.run_due(["w1"])
    part = LeaseThread(manager, clock, "w1")
    thread = threading.Thread(target=part.run, daemon=True)
    thread.start()
    yield part
    part.stop()
    thread.join(20)
    assert not thread.is_alive()


def claimed(data: MemoryData) -> list[str]:
    """The keys of a claim, made once there is one or twenty seconds have passed."""
    worker = data.worker_broker(data.look())
    limits = ClaimLimits(SELDOM.lease_ms, SELDOM.drain_ms, 8, 1_000)
    for _ in range(80):
        batch = worker.claim("w1", "nonce", SPECS, limits)
        if isinstance(batch, Batch):
            return [each.key for each in batch.claims]
        worker.wait([QUEUE], 0.25)
    return []


def test_a_delayed_key_is_queued_when_it_is_due(data: MemoryData, leases: LeaseThread) -> None:
    data.worker_broker(data.look()).add_after(QUEUE, KEY, 30)
    assert claimed(data) == [KEY]


def test_a_key_is_queued_when_the_clock_was_moved_past_it(
    data: MemoryData, leases: LeaseThread, clock: MovableClock
) -> None:
    data.worker_broker(data.look()).add_after(QUEUE, KEY, 3_600_000)
    clock.move(3_600_000)
    leases.wake()
    assert claimed(data) == [KEY]


def test_epochs_in_memory(clock: MovableClock) -> None:
    """As in Redis: none at first, then one after the other, and never an earlier one."""
    data = MemoryData(clock)
    seen = data.look()
    assert (seen.epoch, seen.intact, seen.opened) == (0, False, False)
    data.bootstrap(3)
    seen = data.look()
    assert (seen.epoch, seen.intact, seen.phase, seen.opened) == (3, True, "DRAIN", False)
    early = data.broker(seen)
    early.open([])
    assert data.look().opened
    with pytest.raises(EpochOver, match="epoch 3 was begun before epoch 2 could be"):
        data.bootstrap(2)
    data.bootstrap(4)
    with pytest.raises(EpochOver):
        early.add(QUEUE, [KEY])
    assert not data.look().opened


def test_the_clock(clock: MovableClock) -> None:
    wall_ms, mono_ms, timers_s = clock.wall_ms(), clock.mono_ms(), clock.timers_s()
    clock.move(5_000)
    assert clock.wall_ms() >= wall_ms + 5_000
    assert clock.unix_s() * 1000 >= wall_ms + 5_000
    assert clock.timers_s() >= timers_s + 5
    assert clock.mono_ms() < mono_ms + 5_000
