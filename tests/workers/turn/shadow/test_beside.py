"""A worker that runs dry beside one that works: it finds nothing, however it sees what the other does. One that decides
otherwise is found out.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from oarlock.controllers.replicaset.decide import decide
from oarlock.workers.turn.shadow.course import LAG_MS
from oarlock.workers.turn.shadow.judge import OUTSIDE, SAME, UNEXPLAINED
from tests.workers.turn.shadow.shadow_rig import Shadowed


def play(seed: int, decides: Callable[..., Any] | None = None) -> Shadowed:
    """Sizes go up and down, pods end and are deleted; the shadow sees it in its own order."""
    dice = Random(seed)
    shadow = Shadowed(decides)
    rig = shadow.rig
    uid = rig.owner(dice.randint(1, 6))
    for _ in range(8):
        rig.rest()
        pods = rig.pods(uid)
        for pod in pods:  # each is ready on a node of its own at a time of its own
            if not pod.node_name:
                rig.later(40_000)
                now_ms = rig.clock.wall_ms()
                changes = {"node_name": f"n{len(pod.name)}", "phase": "Running", "created_ms": now_ms - 30_000}
                rig.world.change_pod(pod.name, **changes, ready=dice.random() < 0.8, ready_since_ms=now_ms)
        match dice.choice(("size", "size", "fail", "delete", "orphan")):
            case "size":
                rig.world.change_owner("web", replicas=dice.randint(0, 8))
            case "fail" if pods:
                rig.world.change_pod(dice.choice(pods).name, phase="Failed")
            case "delete" if pods:
                rig.world.remove_pod(dice.choice(pods).name)
            case "orphan":
                rig.bare_pod(f"lone-{rig.world.serial}", {"app": "web"}, phase="Running")
        rig.rest()
        shadow.follow(dice)
        shadow.later(LAG_MS + 1)
    return shadow


@pytest.mark.parametrize("seed", range(12))
def test_it_finds_nothing_that_has_no_reason(seed: int) -> None:
    shadow = play(seed)
    assert [each for each in shadow.kept.differences if each.reason == UNEXPLAINED] == []
    assert shadow.course().wanted.nothing
    assert shadow.course().doubts == ()
    assert shadow.kept.windows[SAME] > 0
    assert not shadow.rig.store.state.queue("replicaset").unsettled


def one_too_few(snapshot: Any, now_ms: int) -> Any:
    plan = decide(snapshot, now_ms)
    return msgspec.structs.replace(plan, create=plan.create[:-1])


def the_others(snapshot: Any, now_ms: int) -> Any:
    """Deletes those that should stay, as many as should go."""
    plan = decide(snapshot, now_ms)
    going = {uid for _, uid in plan.delete}
    staying = [(pod.name, pod.uid) for pod in plan.claimed if pod.uid not in going]
    return msgspec.structs.replace(plan, delete=tuple(staying[: len(going)])) if going else plan


def never_deletes(snapshot: Any, now_ms: int) -> Any:
    return msgspec.structs.replace(decide(snapshot, now_ms), delete=())


def never_adopts(snapshot: Any, now_ms: int) -> Any:
    return decide(msgspec.structs.replace(snapshot, pods=tuple(p for p in snapshot.pods if p.owner_refs)), now_ms)


@pytest.mark.parametrize("wrong", [one_too_few, the_others, never_deletes, never_adopts])
def test_a_decision_that_is_wrong_is_found(wrong: Callable[..., Any]) -> None:
    assert any(each.reason == UNEXPLAINED for seed in range(12) for each in play(seed, wrong).kept.differences)


def test_what_it_wants_and_upstream_never_does_stands() -> None:
    shadow = Shadowed(decide)
    shadow.rig.owner(2)
    shadow.follow(Random(1))
    assert dict(shadow.course().wanted.creates) == {"": 2}
    shadow.later(70_000)
    assert dict(shadow.course().wanted.creates) == {"": 2}
    assert shadow.course().wanted_ms < shadow.rig.clock.wall_ms() - 60_000


def test_of_an_owner_that_has_gone_nothing_is_kept() -> None:
    shadow = Shadowed()
    shadow.rig.owner(1)
    shadow.follow(Random(1))
    assert shadow.kept.of
    shadow.rig.world._commit("replicasets", "web", None)
    shadow.follow(Random(1))
    assert not shadow.kept.of


def test_a_turn_that_saw_less_than_another_is_left_out() -> None:
    shadow = Shadowed()
    shadow.rig.owner(1)
    shadow.follow(Random(1))
    shadow.rig.rest()
    shadow.follow(Random(1))
    course = shadow.course()
    later = msgspec.structs.replace(course, seen=msgspec.structs.replace(course.seen, rv="999999"))
    shadow.kept.of["default/web"] = msgspec.msgpack.encode(later)
    shadow.later(1)
    assert shadow.course() == later
    assert shadow.kept.windows == {SAME: 1} or OUTSIDE in shadow.kept.windows
