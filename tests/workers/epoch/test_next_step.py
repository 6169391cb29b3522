"""The decision about the epoch, a line a case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oarlock.broker.epoch import Seen
from oarlock.workers.epoch.fleet_lease import DRAIN, OPEN, FleetLease
from oarlock.workers.epoch.next_step import Me, Move, View, next_step

TTL_MS = 5_000
LONG = 2 * TTL_MS
ME = Me("me", "oarlock", 3, TTL_MS)
LEASE = FleetLease("oarlock", 3, 7, "run-a", OPEN, "you", 0)
DRAINING = replace(LEASE, phase=DRAIN)
INTACT = Seen(7, "run-a", "run-a", OPEN)
EMPTY = Seen(0, "run-a", "", "")
KNOWING = replace(ME, known=(7, "run-a"))


def decide(
    lease: FleetLease | None, seen: Seen, me: Me = ME, *, unchanged_ms: int = 0, renewed: bool = False, age_ms: int = 0
) -> tuple[Move, int, bool]:
    step = next_step(View(lease, seen, unchanged_ms, renewed, age_ms), me)
    return (step.move, step.epoch, step.drain) if step.move is Move.BOOTSTRAP else (step.move, 0, True)


def bootstrap(epoch: int, drain: bool = True) -> tuple[Move, int, bool]:
    return Move.BOOTSTRAP, epoch, drain


def to(move: Move) -> tuple[Move, int, bool]:
    return move, 0, True


@pytest.mark.parametrize(
    ("seen", "me", "wanted"),
    [
        pytest.param(Seen(0, "r", "", ""), ME, bootstrap(1, drain=False), id="nothing anywhere: first start, no drain"),
        pytest.param(
            Seen(9, "r", "r", OPEN), ME, bootstrap(10), id="an epoch of an unknown life: the next one, with a drain"
        ),
        pytest.param(Seen(9, "r", "s", OPEN), ME, bootstrap(10), id="the same, rolled back"),
        pytest.param(EMPTY, KNOWING, bootstrap(8), id="Lease and data lost, but we remember"),
    ],
)
def test_without_a_lease(seen: Seen, me: Me, wanted: object) -> None:
    assert decide(None, seen, me) == wanted


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        pytest.param(INTACT, to(Move.JOIN), id="all agree"),
        pytest.param(replace(INTACT, phase=DRAIN), bootstrap(8), id="the phase went back"),
        pytest.param(EMPTY, bootstrap(8), id="flushed"),
        pytest.param(Seen(6, "run-a", "run-a", OPEN), bootstrap(8), id="an older epoch on the same server"),
        pytest.param(Seen(8, "run-a", "run-a", DRAIN), bootstrap(9), id="a bootstrapper that came too late"),
        pytest.param(Seen(8, "run-a", "run-b", OPEN), bootstrap(9), id="same server, a file of elsewhere"),
        pytest.param(Seen(10**18 - 1, "run-a", "", ""), bootstrap(8), id="a number that nobody can have counted to"),
        pytest.param(Seen(0, "run-b", "", ""), bootstrap(8), id="restarted empty"),
        pytest.param(Seen(7, "run-b", "run-a", OPEN), bootstrap(8), id="restarted with a file, perhaps an older one"),
        pytest.param(Seen(5, "run-b", "run-a", OPEN), bootstrap(8), id="restarted with a much older file"),
        pytest.param(Seen(6, "run-b", "run-b", OPEN), to(Move.WAIT), id="an abandoned master still serves"),
        pytest.param(Seen(7, "run-b", "run-b", OPEN), to(Move.WAIT), id="another server with the same number"),
    ],
)
def test_open_for_one_that_worked_in_it(seen: Seen, wanted: object) -> None:
    assert decide(LEASE, seen, KNOWING) == wanted


@pytest.mark.parametrize(
    ("seen", "unchanged_ms", "wanted"),
    [
        pytest.param(INTACT, 0, to(Move.JOIN), id="all agree"),
        pytest.param(EMPTY, 0, bootstrap(8), id="flushed: the run id says that it is the fleet's"),
        pytest.param(Seen(0, "run-b", "", ""), 0, to(Move.WAIT), id="empty: restarted, or not the fleet's at all"),
        pytest.param(Seen(0, "run-b", "", ""), TTL_MS - 1, to(Move.WAIT), id="the same, still waiting"),
        pytest.param(Seen(0, "run-b", "", ""), TTL_MS, bootstrap(8), id="nobody renews: it was restarted"),
        pytest.param(Seen(7, "run-b", "run-a", OPEN), TTL_MS, bootstrap(8), id="nobody renews: rolled back"),
        pytest.param(Seen(6, "run-b", "run-b", OPEN), TTL_MS, to(Move.WAIT), id="intact elsewhere: two TTLs"),
        pytest.param(Seen(6, "run-b", "run-b", OPEN), LONG, bootstrap(8), id="intact elsewhere, nobody renews"),
        pytest.param(Seen(9, "run-b", "run-b", OPEN), 0, to(Move.WAIT), id="the Lease may have gone back"),
        pytest.param(Seen(9, "run-b", "run-b", OPEN), TTL_MS, bootstrap(10), id="the Lease went back"),
    ],
)
def test_open_for_a_newcomer(seen: Seen, unchanged_ms: int, wanted: object) -> None:
    assert decide(LEASE, seen, ME, unchanged_ms=unchanged_ms) == wanted


def test_a_lease_that_went_back_is_known_to_one_that_worked_in_a_later_epoch() -> None:
    seen = Seen(9, "run-c", "run-c", OPEN)
    assert decide(LEASE, seen, replace(ME, known=(9, "run-c"))) == bootstrap(10)


def test_an_epoch_found_unusable_is_not_joined_again() -> None:
    assert decide(LEASE, INTACT, replace(KNOWING, refused=7)) == bootstrap(8)
    assert decide(LEASE, INTACT, replace(KNOWING, refused=6)) == to(Move.JOIN)
    assert decide(DRAINING, INTACT, replace(KNOWING, refused=7)) == to(Move.WAIT)
    assert decide(DRAINING, INTACT, replace(KNOWING, refused=7), unchanged_ms=LONG) == bootstrap(8)


@pytest.mark.parametrize(
    ("holder", "bootstrapping", "seen", "unchanged_ms", "wanted"),
    [
        pytest.param("me", 7, EMPTY, 0, to(Move.GO_ON), id="we bootstrap it, Redis not set yet"),
        pytest.param("me", 7, replace(INTACT, phase=DRAIN), LONG, to(Move.GO_ON), id="we bootstrap it, in the drain"),
        pytest.param("me", 0, replace(INTACT, phase=DRAIN), 0, bootstrap(8), id="we bootstrapped it and gave up"),
        pytest.param("you", 0, EMPTY, 0, to(Move.WAIT), id="another one bootstraps it"),
        pytest.param(
            "you", 0, Seen(6, "run-a", "run-a", OPEN), 0, to(Move.WAIT), id="the same, the old epoch still there"
        ),
        pytest.param("you", 0, replace(INTACT, phase=DRAIN), 0, to(Move.JOIN), id="another one is draining"),
        pytest.param("you", 0, INTACT, 0, to(Move.JOIN), id="it has just opened it"),
        pytest.param("you", 0, replace(INTACT, phase=DRAIN), LONG - 1, to(Move.JOIN), id="it may still live"),
        pytest.param("you", 0, replace(INTACT, phase=DRAIN), LONG, bootstrap(8), id="it died in the drain"),
        pytest.param("you", 0, EMPTY, LONG, bootstrap(8), id="it died before it set the epoch"),
        pytest.param("you", 0, INTACT, LONG, to(Move.CONFIRM), id="it died after opening, before saying so"),
        pytest.param("", 0, replace(INTACT, phase=DRAIN), 0, bootstrap(8), id="it resigned"),
        pytest.param(
            "you", 0, Seen(0, "run-b", "", ""), 0, to(Move.WAIT), id="lost again during the drain: its business"
        ),
    ],
)
def test_draining(holder: str, bootstrapping: int, seen: Seen, unchanged_ms: int, wanted: object) -> None:
    lease = replace(DRAINING, holder=holder)
    assert decide(lease, seen, replace(ME, bootstrapping=bootstrapping), unchanged_ms=unchanged_ms) == wanted


@pytest.mark.parametrize(
    ("unchanged_ms", "renewed", "age_ms", "wanted"),
    [
        pytest.param(0, False, 3_000, to(Move.REFUSE), id="renewed three seconds ago"),
        pytest.param(0, False, -3_000, to(Move.REFUSE), id="clocks differ by three seconds"),
        pytest.param(0, False, 3_600_000, to(Move.WAIT), id="an hour old by the clocks: watched"),
        pytest.param(0, True, 3_600_000, to(Move.REFUSE), id="an hour old by the clocks, but renewed under our eyes"),
        pytest.param(LONG - 1, False, 3_600_000, to(Move.WAIT), id="still watched"),
        pytest.param(LONG, False, 3_600_000, bootstrap(8), id="not renewed for two TTLs: gone"),
    ],
)
def test_another_fleet(unchanged_ms: int, renewed: bool, age_ms: int, wanted: object) -> None:
    lease = replace(LEASE, fleet="blue", protocol=9)
    assert decide(lease, EMPTY, unchanged_ms=unchanged_ms, renewed=renewed, age_ms=age_ms) == wanted


@pytest.mark.parametrize("lease", [LEASE, DRAINING])
def test_versions(lease: FleetLease) -> None:
    assert decide(replace(lease, protocol=4), INTACT) == to(Move.REFUSE)
    assert decide(replace(lease, protocol=2), INTACT) == bootstrap(8)


def test_a_lease_reads_as_it_was_written() -> None:
    assert FleetLease.of(LEASE.spec(5_000, None)) == LEASE
    kept = replace(LEASE, epoch=8, transitions=3).spec(5_000, LEASE.spec(5_000, None))
    assert FleetLease.of(kept) == replace(LEASE, epoch=8, transitions=3)


def test_annotations_of_others_are_kept() -> None:
    before = LEASE.spec(5_000, None)
    before.annotations["team"] = "a"
    assert LEASE.spec(5_000, before).annotations["team"] == "a"
