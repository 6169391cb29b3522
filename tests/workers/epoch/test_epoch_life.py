"""The life of an epoch over a real Redis: first start, losses, dead bootstrappers, other fleets, API that went back."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

import pytest
import redis

from oarlock.broker.keys import PROTOCOL
from oarlock.cluster.lease import HeldLease, LeaseError
from oarlock.workers.epoch.bootstrap import Bootstrap, Stage
from oarlock.workers.epoch.coordinator import FleetRefused
from oarlock.workers.epoch.fleet_lease import FleetLease
from oarlock.workers.ingest.lister_watcher import End, Ending
from oarlock.workers.process.settings import Settings
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, pod_json, replicaset_json
from tests.workers.ingest.ingest_rig import Killed, Process, Rig

D_MS = Settings().drain_ms


def fill(rig: Rig, pods: int = 7) -> None:
    """One owner with pods, one orphan that it selects."""
    rig.api.put(REPLICASETS, replicaset_json("x", "web", "rs1", labels={"app": "a"}))
    for i in range(pods):
        rig.api.put(PODS, pod_json("x", f"p{i}", f"u{i}", labels={"app": "a"}, owner="web", owner_uid="rs1"))
    rig.api.put(PODS, pod_json("x", "orphan", "u-orphan", labels={"app": "a"}))


def lease(rig: Rig) -> FleetLease:
    assert rig.lease.held is not None
    return FleetLease.of(rig.lease.held.spec)


def test_the_first_start_opens_without_a_drain(rig: Rig) -> None:
    fill(rig)
    process = rig.start()
    began_ms = rig.clock.mono_ms()
    rig.settle()
    assert rig.clock.mono_ms() == began_ms
    seen = rig.server.epoch()
    assert (seen.epoch, seen.phase, seen.intact) == (1, "OPEN", True)
    assert (lease(rig).epoch, lease(rig).phase, lease(rig).run) == (1, "OPEN", seen.run)
    assert lease(rig).fleet == "oarlock"
    assert process.opened == [1]
    assert rig.check_cache() == 2
    assert rig.work() == 1
    assert rig.check_turns() == 8


def test_an_epoch_without_a_lease_is_of_an_unknown_life_and_is_followed_by_the_next_after_a_drain(rig: Rig) -> None:
    fill(rig)
    rig.server.admin.set("oarlock:{0}:epoch", 41)
    process = rig.start()
    began_ms = rig.clock.mono_ms()
    rig.open()
    assert process.coordinator.epoch == 42
    assert rig.clock.mono_ms() - began_ms >= D_MS


def test_of_two_that_start_together_one_bootstraps_and_the_other_joins(rig: Rig) -> None:
    fill(rig)
    first, second = rig.start("a"), rig.start("b")
    for _ in range(200):
        second.round()
        first.round()
    rig.open()
    assert first.coordinator.epoch == second.coordinator.epoch == 1
    assert sum(source.lists for process in (first, second) for source in process.sources.values()) == 2


def test_a_later_one_watches_from_the_watermark_and_lists_nothing(rig: Rig) -> None:
    fill(rig)
    rig.start("a")
    rig.open()
    late = rig.start("b")
    rig.settle(late)
    assert late.coordinator.standing == "member"
    assert [source.lists for source in late.sources.values()] == [0, 0]
    assert late.sources[PODS].watched_from == [rig.server.mark(1, PODS)]
    orphan = rig.api.put(PODS, pod_json("x", "orphan2", "u2", labels={"app": "a"}))
    rig.work()
    late.catch_up()
    rig.settle(late)
    assert rig.server.mark(1, PODS) == str(orphan)
    assert rig.work() == 1, "it knows the owners from the cache"


def flushed(rig: Rig) -> None:
    rig.server.admin.flushall()
    rig.server.clock(rig.clock.wall_ms())


def restarted_empty(rig: Rig) -> None:
    flushed(rig)
    rig.server.run = "another-run"


def restarted_with_an_older_file(rig: Rig) -> None:
    rig.server.run = "another-run"


def key_gone(rig: Rig) -> None:
    rig.server.admin.delete("oarlock:{0}:epoch")


def scripts_gone(rig: Rig) -> None:
    rig.server.admin.script_flush()


LOSSES = [flushed, restarted_empty, restarted_with_an_older_file, key_gone, scripts_gone]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("count", [1, 2])
def test_a_loss_is_noticed_and_followed_by_a_new_epoch_after_d(rig: Rig, loss: object, count: int) -> None:
    fill(rig)
    processes = [rig.start(name) for name in "ab"[:count]]
    rig.open()
    rig.work()
    loss(rig)  # type: ignore[operator]
    lost_ms = rig.clock.mono_ms()
    while not any(process.coordinator.epoch == 2 for process in processes):
        assert rig.clock.mono_ms() - lost_ms <= 1_500, "a loss is noticed within a second"
        rig.run_for(100)
    bootstrapped_ms = rig.clock.mono_ms()
    rig.api.put(PODS, pod_json("x", "late", "u-late", labels={"app": "a"}, owner="web", owner_uid="rs1"))
    for process in processes:
        process.catch_up()
    while rig.server.epoch().phase != "OPEN":
        rig.run_for(100)
    assert D_MS <= rig.clock.mono_ms() - bootstrapped_ms <= D_MS + 500
    assert int(rig.server.mark(2, PODS) or 0) >= 16
    rig.open()
    assert rig.check_cache() == 2
    assert rig.work() >= 1
    rig.check_turns()
    assert [process.coordinator.epoch for process in processes] == [2] * count
    assert lease(rig).transitions == 1


def test_what_lands_during_the_drain_is_in_the_cache_before_the_epoch_opens(rig: Rig) -> None:
    fill(rig, pods=1)
    rig.start("a")
    rig.start("b")
    rig.open()
    flushed(rig)
    while rig.server.epoch().epoch != 2:
        rig.run_for(100)
    rig.run_for(D_MS - 500)
    assert rig.server.epoch().phase == "DRAIN"
    landed = rig.api.put(PODS, pod_json("x", "written-late", "u-w", labels={"app": "a"}, owner="web", owner_uid="rs1"))
    rig.open()
    assert int(rig.server.mark(2, PODS) or 0) >= landed
    assert "x/written-late" in rig.server.cache(2, PODS)


def kill_after(process: Process, commands: int) -> None:
    """SIGKILL after so many more commands to Redis, in the middle of what it does then."""
    left = [commands]

    def fault(done: bool) -> None:
        left[0] -= done
        if left[0] < 0:
            raise Killed

    process.client.fault = fault


@pytest.mark.parametrize("commands", range(0, 40, 3))
def test_a_bootstrapper_killed_anywhere_is_succeeded_with_the_next_epoch(rig: Rig, commands: int) -> None:
    fill(rig)
    first, second = rig.start("a"), rig.start("b")
    rig.open()
    flushed(rig)
    kill_after(first, commands)
    dead = False
    for _ in range(400):
        rig.advance(100)
        if not dead:
            try:
                first.round()
            except Killed:
                dead = True
                continue
        if dead or first.coordinator.standing != "away":
            rig.settle(second)
        if dead and second.coordinator.phase == "OPEN":
            break
    assert dead
    assert second.coordinator.phase == "OPEN"
    assert rig.server.epoch().epoch in (2, 3)
    assert lease(rig).epoch == rig.server.epoch().epoch
    rig.processes = [second]
    rig.check_cache()
    rig.work()
    rig.check_turns()


def test_a_bootstrapper_that_was_frozen_before_its_set_does_not_bring_an_old_epoch_back(rig: Rig) -> None:
    fill(rig)
    first, second = rig.start("a"), rig.start("b")
    rig.open()
    flushed(rig)
    while lease(rig).epoch == 1:
        rig.advance(100)
        first.round()
    frozen = first.coordinator
    if frozen.broker is None:
        assert frozen.standing != "member"
    rig.run_for(60_000, second, step_ms=500)
    assert second.coordinator.phase == "OPEN"
    number = second.coordinator.epoch
    rig.settle(first)
    rig.run_for(3_000)
    assert rig.server.epoch().epoch == number
    assert first.coordinator.epoch == second.coordinator.epoch == number


def test_a_bootstrapper_touches_redis_only_while_the_lease_is_its_own_and_no_later_epoch_is_there(rig: Rig) -> None:
    process = rig.start()
    run = rig.server.epoch().run
    lease = FleetLease("oarlock", 1, 5, run, "DRAIN", "a", 0)
    bootstrap = Bootstrap(process.side, rig.clock, epoch=5, drain_ms=100, fresh_ms=1_000)
    now_ms = rig.clock.mono_ms()
    assert bootstrap.step(now_ms, lease, now_ms - 1_000, True) is Stage.RENEW
    assert bootstrap.step(now_ms, lease, now_ms, False) is Stage.ON
    assert rig.server.epoch().epoch == 0
    assert bootstrap.step(now_ms, lease, now_ms, True) is Stage.ON
    assert rig.server.epoch().epoch == 5
    assert bootstrap.drained_ms == rig.clock.mono_ms() + 100
    process.side.bootstrap(6)
    assert bootstrap.step(now_ms + 250, lease, now_ms, True) is Stage.LOST
    late = Bootstrap(process.side, rig.clock, epoch=5, drain_ms=100, fresh_ms=1_000)
    assert late.step(now_ms, lease, now_ms, True) is Stage.LOST
    assert rig.server.epoch().epoch == 6
    other_run = replace(lease, epoch=7, run="another")
    elsewhere = Bootstrap(process.side, rig.clock, epoch=7, drain_ms=100, fresh_ms=1_000)
    assert elsewhere.step(now_ms, other_run, now_ms, True) is Stage.LOST


def test_a_bootstrapper_that_ends_in_good_order_is_succeeded_at_once(rig: Rig) -> None:
    fill(rig)
    first, second = rig.start("a"), rig.start("b")
    rig.open()
    flushed(rig)
    while first.coordinator.standing != "bootstrapper":
        rig.run_for(100, first)
    rig.run_for(500, first)
    assert first.coordinator.resign() is not None
    rig.run_for(1_000, second)
    assert second.coordinator.standing == "bootstrapper"
    assert lease(rig).epoch == 3


def test_an_answer_lost_while_winning_the_lease_costs_no_epoch(rig: Rig) -> None:
    fill(rig)
    process = rig.start()
    rig.lease.lose_answers = 1
    rig.open()
    assert process.coordinator.epoch == 1


def test_an_answer_lost_while_opening_costs_no_epoch(rig: Rig) -> None:
    fill(rig)
    process = rig.start()
    rig.lease.delayed = []
    for _ in range(100):
        process.round()
        rig.lease.lose_answers = int(rig.server.epoch().phase == "DRAIN" and process.reflectors[PODS].listed)
        rig.lease.deliver()
    rig.lease.delayed = None
    rig.run_for(1_000)
    assert (process.coordinator.epoch, process.coordinator.standing) == (1, "member")
    assert lease(rig).phase == "OPEN"


def test_a_lease_it_may_not_write_is_asked_for_again(rig: Rig) -> None:
    fill(rig)
    process = rig.start()
    rig.lease.refuse = True
    rig.run_for(5_000)
    assert process.coordinator.epoch == 0
    assert rig.lease.swaps <= 6, "once a second"
    rig.lease.refuse = False
    rig.open()


def test_a_lease_that_may_not_be_written_is_told_once_and_again_after_it_could_be(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    fill(rig)
    process = rig.start()

    def told() -> list[tuple[str, str]]:
        words = [(each.getMessage().split(" why=")[0], each.levelname) for each in caplog.records]
        caplog.clear()
        return [each for each in words if each[0] in ("event=bootstrap", 'event="lease refused"')]

    rig.lease.refuse = True
    rig.run_for(10_000)
    assert told() == [("event=bootstrap", "INFO"), ('event="lease refused"', "WARNING")]
    rig.lease.refuse = False
    rig.open(process)
    told()
    rig.lease.refuse = True
    rig.run_for(10_000)
    assert told() == [('event="lease refused"', "WARNING")]


def test_who_cannot_read_the_lease_warns_once(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the defaults, this line is all that tells of an API server that is not reached."""
    away: Future[HeldLease | None] = Future()
    away.set_exception(LeaseError("cannot connect to 192.0.2.1:6443: Connection refused"))
    monkeypatch.setattr(rig.lease, "read", lambda: away)
    rig.start()
    rig.run_for(5_000)
    assert [each.levelname for each in caplog.records if "Connection refused" in each.getMessage()] == ["WARNING"]


def test_the_lease_is_renewed_by_one_of_several(rig: Rig) -> None:
    fill(rig)
    for name in "abc":
        rig.start(name)
    rig.open()
    before, reads = rig.lease.swaps, rig.lease.reads
    rig.run_for(60_000)
    assert 60_000 / 5_000 <= rig.lease.swaps - before <= 60_000 / 2_000
    assert rig.lease.reads - reads <= 3 * 60_000 / 2_000


def test_a_living_lease_of_another_fleet_ends_the_process(rig: Rig) -> None:
    rig.start("a", settings=Settings(fleet_id="blue"))
    rig.open()
    with pytest.raises(FleetRefused, match=r"fleet 'blue'.*fleet 'oarlock'.*stop one"):
        rig.settle(rig.start("b"))
    assert lease(rig).fleet == "blue"


def test_a_fleet_with_a_wrong_clock_is_noticed_by_its_renewals(rig: Rig) -> None:
    other = rig.start("a", settings=Settings(fleet_id="blue"))
    rig.open()
    mine = rig.start("b")
    hour_ms = 3_600_000

    def live(ms: int) -> None:
        for _ in range(0, ms, 100):
            rig.advance(100)
            rig.settle(other)
            rig.clock._wall_ms += hour_ms  # the newcomer's clock is an hour ahead of the one behind the Lease
            try:
                rig.settle(mine)
            finally:
                rig.clock._wall_ms -= hour_ms

    live(1_000)
    assert mine.coordinator.standing == "away"
    with pytest.raises(FleetRefused):
        live(8_000)


def test_the_lease_of_a_fleet_that_is_gone_is_taken_after_two_ttls(rig: Rig) -> None:
    fill(rig)
    rig.start("a", settings=Settings(fleet_id="blue"))
    rig.open()
    rig.processes.clear()
    rig.advance(3_600_000)
    mine = rig.start("b")
    rig.run_for(9_000)
    assert lease(rig).fleet == "blue"
    rig.run_for(2_000)
    assert (lease(rig).fleet, lease(rig).epoch) == ("oarlock", 2)
    rig.open(mine)


def test_a_newer_protocol_is_bootstrapped_and_the_older_processes_end(rig: Rig) -> None:
    fill(rig)
    old = rig.start("old")
    rig.open()
    new = rig.start("new", protocol=PROTOCOL + 1)
    rig.settle(new)
    assert lease(rig).protocol == PROTOCOL + 1
    with pytest.raises(FleetRefused, match=f"upgraded to protocol {PROTOCOL + 1}"):
        rig.run_for(5_000, old)
    rig.processes = [new]
    rig.open()
    assert new.coordinator.epoch == 2


@pytest.mark.parametrize("refuses", [True, False], ids=["410", "silent"])
def test_an_api_that_went_back_is_alarmed_and_followed_by_a_new_epoch(
    rig: Rig, caplog: pytest.LogCaptureFixture, refuses: bool
) -> None:
    fill(rig)
    process, other = rig.start("a"), rig.start("b")
    rig.open()
    back_to = rig.api.rv - 3
    rig.api.put(PODS, pod_json("x", "never-was", "u-n", labels={"app": "a"}, owner="web", owner_uid="rs1"))
    for each in (process, other):
        each.catch_up()
    rig.settle()
    assert "x/never-was" in rig.server.cache(1, PODS)
    rig.api.refuses_the_future = refuses
    rig.api.restore(back_to)
    for each in (process, other):
        for source in each.sources.values():
            source.visible = 0
            if not refuses:
                source.cut(End(Ending.BROKEN, "the server was restarted"))
    rig.run_for(3_000)
    alarms = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert alarms
    assert "went back" in alarms[0].getMessage()
    rig.open()
    assert process.coordinator.epoch == other.coordinator.epoch >= 2
    rig.check_cache()
    assert "x/never-was" not in rig.server.cache(process.coordinator.epoch, PODS)


def test_a_fleet_on_another_redis_is_left_alone(rig: Rig) -> None:
    """A newcomer with the same fleet id and another Redis, empty: as long as the Lease is renewed it does nothing."""
    fill(rig)
    other = rig.start("a")
    rig.open()
    mine = rig.start("b")
    mine.side.look = lambda: type(rig.server.epoch())(0, "my-own-empty-server", "", "")  # type: ignore[method-assign]
    rig.run_for(30_000)
    assert mine.coordinator.standing == "away"
    assert other.coordinator.epoch == 1
    assert lease(rig).epoch == 1


def test_redis_unreachable_keeps_the_positions(rig: Rig) -> None:
    fill(rig)
    process = rig.start()
    rig.open()
    position = process.reflectors[PODS].position
    down = [True]

    def fault(done: bool) -> None:
        if down[0]:
            raise redis.ConnectionError("down")

    process.client.fault = fault
    changed = rig.api.put(
        PODS, pod_json("x", "p0", "u0", labels={"app": "a"}, owner="web", owner_uid="rs1", restarts=3)
    )
    process.catch_up()
    rig.run_for(20_000)
    assert process.reflectors[PODS].position == position
    assert process.coordinator.epoch == 1
    down[0] = False
    rig.run_for(2_100)
    assert rig.server.mark(1, PODS) == str(changed)
    assert process.sources[PODS].lists == 1
    assert len(process.sources[PODS].watched_from) == 1
