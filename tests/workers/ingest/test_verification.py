"""After a drain: what was listed during it is compared with a second list, and holds all that has landed by then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock.cluster.http.frames import WatchEvent
from oarlock.workers.epoch.fleet_lease import OPEN
from oarlock.workers.ingest.lister_watcher import End, Ending
from oarlock.workers.ingest.reflector import ReflectorState
from oarlock.workers.ingest.verification import ARRIVE_MS, ATTEMPTS
from oarlock.workers.process.settings import Settings
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, pod_json, replicaset_json
from tests.workers.ingest.ingest_rig import Process, Rig

QUICK = Settings(lease_ms=600, renew_every_ms=100, request_timeout_ms=200, send_margin_ms=100)
PODS_LISTED = 7
STEP_MS = 20


def pod(i: int, restarts: int = 0) -> dict[str, object]:
    return pod_json("x", f"p{i}", f"u{i}", labels={"app": "a"}, owner="web", owner_uid="rs1", restarts=restarts)


@pytest.fixture
def drained(make_rig: Callable[..., Rig]) -> Rig:
    """A fleet whose Redis was lost, and the drain that followed is nearly over; all is listed already."""
    rig = make_rig(settings=QUICK)
    rig.api.put(REPLICASETS, replicaset_json("x", "web", "rs1", labels={"app": "a"}))
    for i in range(PODS_LISTED):
        rig.api.put(PODS, pod(i))
    rig.start("a")
    rig.open()
    rig.work()
    rig.server.admin.flushall()
    rig.server.clock(rig.clock.wall_ms())
    process = rig.processes[0]
    while process.coordinator.bootstrap is None or process.coordinator.bootstrap.drained_ms is None:
        rig.run_for(STEP_MS, step_ms=STEP_MS)
    rig.run_for(process.coordinator.bootstrap.drained_ms - 100 - rig.clock.mono_ms(), step_ms=STEP_MS)
    assert process.coordinator.epoch == 2
    assert process.coordinator.phase != OPEN
    assert rig.check_cache() == 2, "it was listed in the drain"
    return rig


def until_open(rig: Rig, limit_ms: int) -> int:
    """Ms until the epoch is open. Whatever has landed by the end of the drain must be in the cache then."""
    process = rig.processes[0]
    landed, waited = 0, 0
    while process.coordinator.phase != OPEN:
        if not process.coordinator.wants_lists(rig.clock.mono_ms()) and process.coordinator.bootstrap is not None:
            landed = max([event[0] for events in rig.api.events.values() for event in events])
        rig.run_for(STEP_MS, step_ms=STEP_MS)
        waited += STEP_MS
        assert waited <= limit_ms
    marks = {resource: int(rig.server.mark(2, resource) or 0) for resource in (PODS, REPLICASETS)}
    for resource, mark in marks.items():
        assert mark >= max([event[0] for event in rig.api.events[resource] if event[0] <= landed], default=0)
    assert rig.check_cache() == 2
    return waited


def commits(process: Process) -> int:
    return process.reflectors[PODS].lists


def test_where_nothing_has_happened_it_opens_at_once_without_another_list(drained: Rig) -> None:
    process = drained.processes[0]
    before = commits(process)
    assert until_open(drained, 200) <= 160
    assert commits(process) == before
    last = max(event[0] for event in drained.api.events[PODS])
    assert int(drained.server.mark(2, PODS) or 0) > last, "it is that of the list, which was of later"
    assert drained.work() == 1
    assert drained.check_turns() == PODS_LISTED


def test_what_lands_in_the_drain_and_is_heard_of_needs_no_list(drained: Rig) -> None:
    process = drained.processes[0]
    before = commits(process)
    drained.api.put(PODS, pod(99))
    drained.api.delete(PODS, "x/p0")
    process.catch_up()
    until_open(drained, 200)
    assert commits(process) == before


@pytest.mark.parametrize("change", ["created", "changed", "deleted", "one for another"])
def test_what_lands_in_the_drain_and_is_not_heard_of_is_found(drained: Rig, change: str) -> None:
    """The watch is silent. A worker that was not told of its own create would make another one."""
    process = drained.processes[0]
    before = commits(process)
    if change in ("created", "one for another"):
        drained.api.put(PODS, pod(99))
    if change == "changed":
        drained.api.put(PODS, pod(0, restarts=1))
    if change in ("deleted", "one for another"):
        drained.api.delete(PODS, "x/p3")
    took_ms = until_open(drained, ATTEMPTS * (ARRIVE_MS + 500) + 500)
    assert took_ms >= ARRIVE_MS
    assert commits(process) == before + 1


def test_an_event_on_its_way_is_waited_for(drained: Rig) -> None:
    process = drained.processes[0]
    before = commits(process)
    drained.api.put(PODS, pod(99))
    drained.run_for(160, step_ms=STEP_MS)
    assert process.coordinator.phase != OPEN
    process.catch_up()
    until_open(drained, 200)
    assert commits(process) == before


def test_events_that_go_on_prove_it_before_the_list_is_read(drained: Rig) -> None:
    process = drained.processes[0]
    source = process.sources[PODS]
    drained.run_for(100 - STEP_MS, step_ms=STEP_MS)
    source.answers = False  # the list comes no further
    drained.run_for(60, step_ms=STEP_MS)
    assert process.coordinator.phase != OPEN
    source.answers = True
    drained.api.put(PODS, pod(0, restarts=5))
    process.catch_up()
    until_open(drained, 100)
    assert source.listing is not None
    assert source.listing.closed


def test_a_list_that_breaks_off_is_read_anew(drained: Rig) -> None:
    process = drained.processes[0]
    before = commits(process)
    process.sources[PODS].answers = False
    drained.run_for(160, step_ms=STEP_MS)
    listing = process.sources[PODS].listing
    assert listing is not None
    listing.cut = End(Ending.BROKEN, "cut")
    process.sources[PODS].answers = True
    until_open(drained, 1_000)
    assert commits(process) == before + 1


def test_a_list_of_the_drain_that_is_not_done_by_its_end_is_compared_afterwards(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(settings=QUICK)
    rig.api.put(REPLICASETS, replicaset_json("x", "web", "rs1", labels={"app": "a"}))
    for i in range(PODS_LISTED):
        rig.api.put(PODS, pod(i))
    process = rig.start("a")
    rig.open()
    rig.server.admin.flushall()
    rig.server.clock(rig.clock.wall_ms())
    rig.run_for(300, step_ms=STEP_MS)
    process.reflectors[PODS].relist()  # slow: it began long ago, and what it shows is of then
    source = process.sources[PODS]
    process.round()
    source.answers = False
    while not process.coordinator.wants_lists(rig.clock.mono_ms()):
        rig.run_for(STEP_MS, step_ms=STEP_MS)
    assert process.reflectors[PODS].state is ReflectorState.LISTING
    rig.api.put(PODS, pod(99))
    rig.run_for(100, step_ms=STEP_MS)
    source.answers = True
    rig.run_for(STEP_MS, step_ms=STEP_MS)
    assert process.coordinator.phase != OPEN, "the list is of an earlier time"
    source.catch_up()
    until_open(rig, ARRIVE_MS + 1_000)
    assert rig.server.cache(2, PODS)["x/p99"]


def test_a_watch_that_ends_meanwhile_does_not_end_it(drained: Rig) -> None:
    process = drained.processes[0]
    process.sources[PODS].answers = False
    drained.run_for(160, step_ms=STEP_MS)
    process.sources[PODS].cut(End(Ending.CLOSED))
    process.sources[PODS].answers = True
    watching = process.sources[PODS].watching
    assert watching is not None
    watching.extra = [WatchEvent("BOOKMARK", str(drained.api.rv), b"{}")]
    until_open(drained, 1_000)
