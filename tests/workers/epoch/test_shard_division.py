"""How many shards there are is agreed on, and changed only with every write of the last division landed."""

from __future__ import annotations

import random

import pytest

from oarlock.broker import epoch
from oarlock.broker.values.errors import EpochOver
from oarlock.workers.epoch.fleet_lease import FleetLease, lease_name
from oarlock.workers.process.shards import names, shard_of
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, pod_json, replicaset_json
from tests.workers.ingest.ingest_rig import Server
from tests.workers.ingest.shard_rig import QUICK, STEP_MS, ShardRig

GONE_MS = 2 * QUICK.lease_ms
NAMESPACES = [f"team-{i}" for i in range(6)]


@pytest.fixture
def rig(redis_server: Server) -> ShardRig:
    return ShardRig(redis_server)


def fill(rig: ShardRig) -> None:
    for namespace in NAMESPACES:
        rig.api.put(REPLICASETS, replicaset_json(namespace, "web", f"rs-{namespace}", labels={"app": "a"}))
        about = {"labels": {"app": "a"}, "owner": "web", "owner_uid": f"rs-{namespace}"}
        rig.api.put(PODS, pod_json(namespace, "p", f"u-{namespace}", **about))


def test_each_shard_has_its_namespaces_and_an_epoch_of_its_own(rig: ShardRig) -> None:
    fill(rig)
    rig.open(*rig.start_all(3))
    assert rig.at_work() == {"0": 3, "1": 3, "2": 3}
    for shard in names(3):
        ours = {f"{namespace}/web" for namespace in NAMESPACES if shard_of(namespace, 3) == shard}
        assert rig.cache(shard, REPLICASETS).keys() == ours
        assert rig.worker(shard).add("replicaset", []) == 0
        assert rig.said(shard).shards == 3
    assert rig.said().moving == 0


def test_one_shard_alone_says_nothing_of_shards(rig: ShardRig) -> None:
    rig.open(rig.start("0", 1))
    held = rig.lease("0").held
    assert held is not None
    assert set(held.spec.annotations) == {
        f"oarlock.io/{each}" for each in ("fleet", "protocol", "epoch", "redis-run-id", "phase")
    }
    assert lease_name("0") == "oarlock"


def test_names_of_leases_do_not_depend_on_how_many_there_are() -> None:
    assert [lease_name(shard) for shard in names(3)] == ["oarlock", "oarlock-1", "oarlock-2"]


def test_what_happens_in_one_shard_moves_the_watermark_of_all_and_wakes_nobody_there(rig: ShardRig) -> None:
    fill(rig)
    processes = rig.start_all(3)
    rig.open(*processes)
    rig.run_for(STEP_MS)
    for shard in names(3):
        namespace = next(each for each in NAMESPACES if shard_of(each, 3) == shard)
        before = {each: rig.cache(each, PODS) for each in names(3)}
        rv = rig.api.put(PODS, pod_json(namespace, "new", f"new-{shard}", labels={"app": "a"}))
        rig.run_for(300)
        assert [rig.mark(each, PODS) for each in names(3)] == [rv] * 3
        changed = [each for each in names(3) if rig.cache(each, PODS) != before[each]]
        assert changed == [shard]


def test_a_shard_whose_data_are_lost_is_begun_anew_and_no_other(rig: ShardRig) -> None:
    fill(rig)
    processes = rig.start_all(3)
    rig.open(*processes)
    rig.server.admin.unlink(*rig.server.admin.scan_iter("oarlock:*{1}*"))
    took_ms = 0
    while rig.at_work().get("1") is None:
        rig.run_for(STEP_MS)
        took_ms += STEP_MS
        assert {shard: rig.shown(shard).epoch for shard in ("0", "2")} == {"0": 1, "2": 1}
        assert took_ms < 10_000
    assert took_ms >= QUICK.drain_ms
    assert rig.shown("1").epoch == 2
    assert [process.coordinator.epoch for process in processes] == [1, 2, 1]


def test_all_lost_at_once(rig: ShardRig) -> None:
    fill(rig)
    processes = rig.start_all(3)
    rig.open(*processes)
    rig.server.admin.flushall()
    rig.pass_time()
    rig.run_for(QUICK.drain_ms - 2 * STEP_MS)
    assert rig.at_work() == {}
    rig.run_for(3_000)
    assert rig.at_work() == {"0": 3, "1": 3, "2": 3}
    assert {rig.shown(shard).epoch for shard in names(3)} == {2}


@pytest.mark.parametrize(("before", "after"), [(3, 2), (1, 3), (3, 1)])
def test_another_division_is_refused_while_this_one_lives(rig: ShardRig, before: int, after: int) -> None:
    fill(rig)
    here = rig.start_all(before)
    rig.open(*here)
    there = rig.start_all(after)
    rig.run_for(4_000)
    assert rig.at_work() == dict.fromkeys(names(before), before)
    assert {rig.shown(shard).epoch for shard in names(before)} == {1}
    assert f"the fleet is divided into {before}, this process into {after}, and it is alive" in there[0].refused
    assert all(not process.coordinator.epoch for process in there)


@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 3), (1, 3), (3, 1)])
def test_a_division_that_is_gone_is_followed_by_another_after_a_drain(rig: ShardRig, before: int, after: int) -> None:
    """Its workers may still run: they are told that their epochs are over before D begins."""
    fill(rig)
    rig.open(*rig.start_all(before))
    workers = {shard: rig.worker(shard) for shard in names(before)}
    heirs = rig.start_all(after)
    ended_ms = None
    began_ms = rig.clock.mono_ms()
    while len(rig.at_work()) < after or 0 in rig.at_work().values() or set(rig.at_work().values()) != {after}:
        rig.run_for(STEP_MS, *heirs)
        now_ms = rig.clock.mono_ms()
        at_work = set(rig.at_work().values())
        assert len(at_work) <= 1, "two divisions at once"
        over = all(is_over(worker) for worker in workers.values())
        if over and ended_ms is None:
            ended_ms = now_ms
            assert now_ms - began_ms >= GONE_MS
        if at_work == {after}:
            assert ended_ms is not None
            assert now_ms - ended_ms >= QUICK.drain_ms - STEP_MS
        assert now_ms - began_ms < 20_000, rig.at_work()
    assert all(is_over(worker) for worker in workers.values())
    assert (rig.said().shards, rig.said().moving) == (after, 0)
    kept = {key for shard in names(after) for key in rig.cache(shard, REPLICASETS)}
    assert kept == {f"{namespace}/web" for namespace in NAMESPACES}


def is_over(worker: object) -> bool:
    try:
        worker.add("replicaset", [])  # type: ignore[attr-defined]
    except EpochOver:
        return True
    return False


def test_a_shard_that_is_no_more_is_ended_and_its_numbers_never_come_again(rig: ShardRig) -> None:
    rig.open(*rig.start_all(3))
    three = {shard: rig.shown(shard).epoch for shard in names(3)}
    rig.open(*rig.start_all(2))
    assert rig.shown("2").epoch == three["2"] + 1
    assert not rig.shown("2").intact
    rig.run_for(GONE_MS, *rig.processes[:0])
    rig.open(*rig.start_all(3))
    assert rig.shown("2").epoch > three["2"] + 1
    assert all(rig.shown(shard).epoch > three[shard] for shard in names(3))


def test_a_bootstrapper_that_dies_while_shards_change_is_succeeded_by_one_that_ends_all_again(rig: ShardRig) -> None:
    rig.open(*rig.start_all(3))
    first = rig.start("0", 2)
    while rig.shown("0").division != 2:
        rig.run_for(STEP_MS, first)
    assert rig.said().moving == 3
    heirs = rig.start_all(2)
    took_ms = rig.open(*heirs)
    assert took_ms >= GONE_MS + QUICK.drain_ms
    assert rig.at_work() == {"0": 2, "1": 2}
    # A third division, begun before the second was settled, has to end the first as well.
    assert FleetLease("f", 1, 1, "r", "DRAIN", "h", 0, shards=2, moving=3).still_moving(5) == 3
    assert FleetLease("f", 1, 1, "r", "DRAIN", "h", 0, shards=2, moving=0).still_moving(5) == 2


def test_without_a_lease_nobody_knows_what_was_so_all_are_ended(rig: ShardRig) -> None:
    rig.open(*rig.start_all(3))
    workers = [rig.worker(shard) for shard in names(3)]
    rig.lease("0").held = None
    heirs = rig.start_all(2)
    rig.settle(*heirs)
    assert all(is_over(worker) for worker in workers)
    assert rig.open(*heirs) >= QUICK.drain_ms
    assert rig.at_work() == {"0": 2, "1": 2}


def test_to_end_an_epoch_is_to_take_its_number(rig: ShardRig) -> None:
    assert epoch.end(rig.client, "2") == 0
    epoch.bootstrap(rig.client, 6, "2")
    assert epoch.end(rig.client, "2") == 7
    with pytest.raises(EpochOver):
        epoch.bootstrap(rig.client, 6, "2")
    assert not epoch.current(rig.client, "2").intact


def test_an_epoch_is_opened_only_after_the_division_was_asked_for_once_more(rig: ShardRig) -> None:
    """A bootstrapper won its Lease, slept through a change of the division, and then hears nothing of shard 0."""
    first = rig.start("0", 2)
    rig.open(first)
    sleeper = rig.start("1", 2)
    own = rig.lease("1")
    own.delayed = []
    while own.held is None:
        rig.pass_time(20)
        sleeper.coordinator.step(rig.clock.mono_ms())
        if own.held is None:
            own.deliver()
    assert rig.shown("1").epoch == 0, "it has the Lease, does not know it yet, and sleeps"
    rig.open(rig.start("0", 1))
    rig.lease("0").delayed = []
    own.deliver()
    own.delayed = None
    rig.run_for(5_000, sleeper)
    assert rig.bootstrapped_by["1", 1] == 2, "it went on"
    assert rig.at_work() == {"0": 1}
    rig.lease("0").deliver()
    rig.lease("0").delayed = None
    rig.run_for(1_000, sleeper)
    assert sleeper.coordinator.standing == "away"
    assert rig.at_work() == {"0": 1}


@pytest.mark.parametrize("seed", range(3))
def test_no_two_divisions_are_ever_at_work_together(redis_server: Server, seed: int) -> None:
    """Ingestors of one division after the other: killed, or asleep between any two of their steps while the next one
    takes over, and awake again; and shards whose data are lost.
    """
    rng = random.Random(seed)
    rig = ShardRig(redis_server, seed)
    rig.api.put(PODS, pod_json("team-0", "p", "u", labels={"app": "a"}))
    asleep: dict[str, int] = {}
    division, last_ms, changes = 0, 0, 0
    for step in range(350):
        now_ms = rig.clock.mono_ms()
        if step % 70 == 0:  # an operator stops, or believes to have stopped, one division and starts another
            rig.processes = [each for each in rig.processes if not each.refused and rng.random() < 0.5]
            asleep = {each.name: now_ms + rng.choice((3_000, 6_000, 12_000)) for each in rig.processes}
            rig.start_all(rng.choice([each for each in (1, 2, 3) if each != division]))
        elif rng.random() < 0.02 and (awake := [each for each in rig.processes if each.name not in asleep]):
            asleep[rng.choice(awake).name] = now_ms + 1_500
        elif rng.random() < 0.02 and (lost := [*rig.server.admin.scan_iter(f"oarlock:*{{{rng.randrange(3)}}}*")]):
            rig.server.admin.unlink(*lost)
        rig.pass_time(rng.choice((50, 100, 300)))
        now_ms = rig.clock.mono_ms()
        for process in rng.sample(rig.processes, len(rig.processes)):
            if asleep.get(process.name, 0) > now_ms:
                continue
            for _ in range(rng.choice((1, 2, 40))):  # it may go to sleep in the midst of its work
                if process.round() > 0:
                    break
        at_work = set(rig.at_work().values())
        assert len(at_work) <= 1, (seed, rig.at_work())
        for each in at_work:
            changes += each != division
            assert each == division or not division or now_ms - last_ms >= QUICK.drain_ms, (seed, division, each)
            division, last_ms = each, now_ms
    print(f"seed {seed}: {changes} divisions")
    assert changes >= 2, "nothing was tried"
