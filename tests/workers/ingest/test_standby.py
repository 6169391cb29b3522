"""An ingestor without a watch, while another is ahead by many events: when it stands by, and what it takes up after."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock.workers.ingest.reflector import REST_MS, ReflectorState
from oarlock.workers.ingest.standby import ENOUGH_EVENTS, LONGEST_MS, LOOK_MS, STILL_LOOKS, WITHIN_MS, Standby
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, pod_json, replicaset_json
from tests.workers.ingest.ingest_rig import Process, Rig

EVENTS = 10
BURST = 5


@pytest.mark.parametrize(
    ("looks", "pays"),
    [
        pytest.param([(0, 0), (ENOUGH_EVENTS, 500)], True, id="many at once"),
        pytest.param([(0, 0), (ENOUGH_EVENTS - 1, 500)], False, id="few"),
        pytest.param([(0, 0), (200, 900), (ENOUGH_EVENTS, WITHIN_MS + 1)], False, id="many in a long time"),
        pytest.param([(0, 0), (100, WITHIN_MS + 1), (100 + ENOUGH_EVENTS, 2 * WITHIN_MS)], True, id="counted anew"),
        pytest.param([(9_000, 0)], False, id="what was passed over before it looked"),
    ],
)
def test_when_it_pays(looks: list[tuple[int, int]], pays: bool) -> None:
    standby = Standby()
    standby.begin(1_000)
    assert [standby.pays(skipped, 5_000 + now_ms) for skipped, now_ms in looks][-1] is pays


@pytest.mark.parametrize(
    ("marks", "over"),
    [
        pytest.param(["7"], False, id="the first look knows no other"),
        pytest.param(["7", "8", "9", "10", "11"], False, id="it moves"),
        pytest.param(["7", "7"], False, id="still once"),
        pytest.param(["7"] * (1 + STILL_LOOKS), True, id="it stands still"),
        pytest.param(["7", "7", "8", "8"], False, id="still once, then again"),
    ],
)
def test_when_it_is_over(marks: list[str], over: bool) -> None:
    standby = Standby()
    standby.begin(1_000)
    assert [standby.is_over(mark, 1_000 + LOOK_MS * at) for at, mark in enumerate(marks, 1)][-1] is over


def test_it_is_over_after_a_while_in_any_case() -> None:
    standby = Standby()
    standby.begin(1_000)
    assert not standby.is_over("7", 999 + LONGEST_MS)
    assert standby.is_over("8", 1_000 + LONGEST_MS)


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(standby_events=EVENTS)


@pytest.fixture
def pair(rig: Rig) -> tuple[Process, Process]:
    """An open epoch over an owner with five pods, one ingestor that is ahead and another that stands by."""
    rig.api.put(REPLICASETS, replicaset_json("x", "web", "rs1", labels={"app": "a"}))
    first, second = rig.start("a"), rig.start("b")
    rig.open()
    for _ in range(3 + EVENTS // BURST):
        ahead(rig, first)
        second.catch_up()
        rig.settle(second)
        rig.advance(REST_MS)
        rig.settle(second)
    assert second.reflectors[PODS].state is ReflectorState.STANDBY
    return first, second


def ahead(rig: Rig, process: Process) -> None:
    """A burst of events, which one ingestor applies."""
    for i in range(BURST):
        restarts = rig.api.rv
        pod = pod_json("x", f"p{i}", f"u{i}", labels={"app": "a"}, owner="web", owner_uid="rs1", restarts=restarts)
        rig.api.put(PODS, pod)
    process.catch_up()
    rig.settle(process)


def test_it_opens_no_watch_while_the_watermark_moves(rig: Rig, pair: tuple[Process, Process]) -> None:
    first, second = pair
    watches = len(second.sources[PODS].watched_from)
    for _ in range(LONGEST_MS // LOOK_MS - STILL_LOOKS):
        ahead(rig, first)
        rig.advance(LOOK_MS)
        rig.settle(second)
    reflector = second.reflectors[PODS]
    assert len(second.sources[PODS].watched_from) == watches
    assert reflector.position == rig.server.mark(1, PODS) == first.reflectors[PODS].position
    assert reflector.applier.counts.applied == 0
    for _ in range(STILL_LOOKS + 1):
        ahead(rig, first)
        rig.advance(LOOK_MS)
        rig.settle(second)
    assert len(second.sources[PODS].watched_from) == watches + 1, "now and then it watches"
    assert reflector.state is ReflectorState.WATCHING


def test_it_takes_over_from_a_dead_one(rig: Rig, pair: tuple[Process, Process]) -> None:
    first, second = pair
    rig.processes.remove(first)
    last = rig.api.put(PODS, pod_json("x", "p0", "u0", labels={"app": "a"}, owner="web", owner_uid="rs1", restarts=9))
    second.catch_up()
    rig.run_for(LOOK_MS * (STILL_LOOKS + 1) + REST_MS, second, step_ms=10)
    assert rig.server.mark(1, PODS) == str(last)
    assert rig.check_cache() == 2


@pytest.mark.parametrize("dies", [False, True], ids=["ahead lives", "ahead dies"])
def test_an_orphan_that_came_meanwhile_meets_an_owner_that_only_this_one_knows(
    rig: Rig, pair: tuple[Process, Process], dies: bool
) -> None:
    """The one ahead with pods has not heard of the owner, and the owner's own turn came before the orphan."""
    first, second = pair
    rig.api.put(REPLICASETS, replicaset_json("x", "new", "rs-new", labels={"app": "n"}))
    second.sources[REPLICASETS].catch_up()
    rig.settle(second)
    rig.work()
    rig.api.put(PODS, pod_json("x", "stray", "u-s", labels={"app": "n"}))
    first.sources[PODS].catch_up()
    rig.settle(first)
    if dies:
        rig.processes.remove(first)
    else:
        first.catch_up()
    rig.run_for(LOOK_MS * (STILL_LOOKS + 2), *rig.processes, step_ms=LOOK_MS)
    rig.work()
    assert rig.check_turns() == BURST + 1


def test_one_of_owners_always_watches(rig: Rig, pair: tuple[Process, Process]) -> None:
    first, second = pair
    for generation in range(3 * EVENTS):
        rig.api.put(REPLICASETS, replicaset_json("x", "web", "rs1", labels={"app": "a", "n": str(generation)}))
        first.catch_up()
        rig.settle(first)
        second.catch_up()
        rig.settle(second)
        rig.advance(REST_MS)
        rig.settle(second)
        assert second.reflectors[REPLICASETS].state is ReflectorState.WATCHING


def test_a_list_that_is_asked_for_ends_it(rig: Rig, pair: tuple[Process, Process]) -> None:
    _, second = pair
    reflector = second.reflectors[PODS]
    reflector.relist()
    rig.run_for(2_000, second)
    assert reflector.listed
    assert reflector.state is ReflectorState.WATCHING
    assert rig.check_cache() == 2
