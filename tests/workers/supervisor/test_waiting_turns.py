"""Real workers with turns that wait for minutes: what they claim beside them, and what becomes of all when they die."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from tests.workers.fleet_puppet import BEGUN, QUEUE
from tests.workers.fleet_rig import Rig, until
from tests.workers.supervisor.test_supervisor import crashes, holder_of

HELD = [f"slow/held-{number}" for number in range(1, 4)]


def with_held(rig: Rig, keys: list[str] = HELD) -> str:
    """A fleet of one worker, whose turns over these keys wait. Returns the worker."""
    rig.add(*keys)
    rig.fleet(1)
    until(lambda: all(rig.begun(key) for key in keys))
    return holder_of(rig, keys[0])


def test_a_worker_goes_on_with_others_while_its_turns_wait_and_gives_all_back_when_it_is_killed(rig: Rig) -> None:
    worker = with_held(rig)
    for key in ("a/ok-1", "a/ok-2"):
        rig.add(key)
        until(lambda key=key: rig.ended(key))
    until(lambda: set(rig.locks()) == set(HELD))
    assert [rig.begun(key) for key in HELD] == [1, 1, 1]
    os.kill(rig.pids()[worker], signal.SIGKILL)
    until(lambda: all(rig.begun(key) == 2 for key in HELD))
    assert sum(crashes(rig, key) for key in HELD) <= 1, "the turn that computed last, at most"


def test_a_worker_that_a_signal_stops_gives_back_all_that_waits_after_a_lease(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(lease_ms=1_600, renew_every_ms=400, send_margin_ms=100)
    worker = with_held(rig)
    os.kill(rig.pids()[worker], signal.SIGSTOP)
    until(lambda: all(rig.begun(key) >= 2 for key in HELD))
    assert [crashes(rig, key) for key in HELD] == [0, 0, 0], "nobody is to blame"


def test_a_namespace_whose_turns_wait_leaves_places_to_others(rig: Rig) -> None:
    many = [f"slow/held-{number:02d}" for number in range(60)]
    with_held(rig, many[:1])
    rig.add(*many[1:])
    until(lambda: len(rig.locks()) >= 24)
    rig.add("a/ok-1")
    until(lambda: rig.ended("a/ok-1"))
    assert 24 <= len(rig.locks()) <= 24 + 7, "a batch at most beyond half of the places"


def test_a_poison_key_beside_waiting_turns_is_blamed_and_they_are_not(rig: Rig) -> None:
    """After its first crash it is claimed alone, so the turns that wait are lost to it once."""
    worker = with_held(rig)
    rig.add("a/die-1")
    until(lambda: rig.state("a/die-1") == "parked")
    until(lambda: set(rig.locks()) == set(HELD) and all(rig.begun(key) == 2 for key in HELD))
    assert holder_of(rig, HELD[0]) != worker
    assert [crashes(rig, key) for key in HELD] == [0, 0, 0]
    assert rig.begun("a/die-1") == 2


def test_a_key_that_crashed_a_worker_waits_for_the_turns_of_one_worker_alone(rig: Rig) -> None:
    rig.admin.hset(rig.broker.keys.crashes(QUEUE), "a/ok-lone", 1)
    rig.add("slow/slow-1")
    rig.fleet(1)
    until(lambda: rig.begun("slow/slow-1") == 1)
    rig.add("a/ok-lone", "a/ok-1")
    until(lambda: rig.begun("a/ok-lone"))
    assert rig.ended("slow/slow-1")
    until(lambda: rig.ended("a/ok-1"))
    begun = [key.decode() for key in rig.admin.lrange(BEGUN, 0, -1)]
    assert begun == ["slow/slow-1", "a/ok-lone", "a/ok-1"]
    assert crashes(rig, "a/ok-lone") == 0


def test_a_worker_that_is_to_stop_claims_nothing_more_and_ends_what_waits(rig: Rig) -> None:
    rig.add("slow/slow-1")
    fleet = rig.fleet(1)
    until(lambda: rig.begun("slow/slow-1") == 1)
    fleet.terminate()
    until(lambda: "event=stop_heard" in rig.log(), what="the worker hears of it")
    rig.add("a/ok-1")
    assert fleet.wait(30) == 0
    assert rig.ended("slow/slow-1")
    assert (rig.begun("a/ok-1"), rig.state("a/ok-1")) == (0, "queued")
