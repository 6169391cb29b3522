"""What a child process is to the loop that keeps it: when it is started again, and how it is ended."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from oarlock.sandbox.up import program
from oarlock.workers.counters.turn_slots import TurnSlots
from oarlock.workers.metrics.serving import metrics_process
from oarlock.workers.process.child import NOT_STARTED_PAUSE_MS, BackOff, Child, next_start_ms
from oarlock.workers.supervisor import position, shard_processes


class ScriptedProcess:
    """A process that runs until it is told how it ended."""

    def __init__(self) -> None:
        self.pid, self.code, self.signals = 4711, None, []  # type: tuple[int, int | None, list[int]]

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, sig: int) -> None:
        self.signals.append(sig)


def refused() -> ScriptedProcess:
    raise BlockingIOError("no more processes")


def pauses(child: Child, lives_ms: list[int], end: Callable[[Child, int], object] = Child.ended) -> list[int]:
    """How long after each of these lives the child is due again."""
    found, now_ms = [], 1_000
    for life_ms in lives_ms:
        process = ScriptedProcess()
        child.start(lambda process=process: process, now_ms)
        assert child.ended(now_ms) is None
        process.code, now_ms = 1, now_ms + life_ms
        assert end(child, now_ms) is not None
        found.append(child.start_at_ms - now_ms)
        assert child.is_due(now_ms) is (found[-1] == 0)
        now_ms = child.start_at_ms
    return found


@pytest.mark.parametrize(
    ("back_off", "lives_ms", "expected"),
    [
        pytest.param(
            position.BACK_OFF, [0] * 10, [0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000], id="workers"
        ),
        pytest.param(position.BACK_OFF, [0, 0, 1_999, 2_000, 0, 0], [0, 100, 200, 0, 0, 100], id="a steady worker"),
        pytest.param(shard_processes.BACK_OFF, [0, 0, 9_999, 10_000, 0, 0], [0, 100, 200, 0, 100, 200], id="shards"),
        pytest.param(program.BACK_OFF, [0, 0, 9_999, 10_000, 0, 0], [100, 200, 400, 100, 200, 400], id="oarlock up"),
        pytest.param(program.BACK_OFF, [0] * 8, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000], id="up, at most"),
        pytest.param(metrics_process.BACK_OFF, [0, 60_000, 0], [1_000, 1_000, 1_000], id="metrics"),
    ],
)
def test_a_child_that_ends_early_is_started_slower_and_slower(
    back_off: BackOff, lives_ms: list[int], expected: list[int]
) -> None:
    assert pauses(Child("c", back_off), lives_ms) == expected


def test_a_worker_that_had_worked_is_replaced_within_a_tenth_of_a_second() -> None:
    slots = TurnSlots(1)
    place = position.Position(slots[0])

    def end(child: Child, now_ms: int) -> object:
        slots[0].begin(now_ms, "replicaset:default/web")
        return place.death(now_ms)

    assert pauses(place, [0] * 9, end) == [0] + [100] * 8
    assert not place.slot.proven, "the next worker has not worked yet"


@pytest.mark.parametrize(
    ("code", "killed", "blamed"),
    [(-9, False, "replicaset:default/web"), (-9, True, ""), (75, False, ""), (0, False, "")],
)
def test_a_death_blames_the_key_that_was_worked_on(code: int, killed: bool, blamed: str) -> None:
    place, process = position.Position(TurnSlots(1)[0]), ScriptedProcess()
    place.start(lambda: process, 1_000)
    place.name = "w-1"
    place.slot.begin(1_000, "replicaset:default/web")
    if killed:
        place.kill("stalled")
    process.code = code
    assert place.death(1_500) == ("w-1", 4711, code, killed, blamed)
    assert place.death(1_500) is None


def test_a_start_that_the_system_refuses_is_tried_again_in_a_second() -> None:
    child = Child("c", position.BACK_OFF)
    with pytest.raises(BlockingIOError):
        child.start(refused, 1_000)
    assert (child.pid, child.is_due(1_999), child.is_due(1_000 + NOT_STARTED_PAUSE_MS)) == (0, False, True)


def test_why_it_is_not_started_is_news_once_until_it_has_run() -> None:
    child = Child("c", position.BACK_OFF)
    assert [child.is_news(why) for why in ("no memory", "no memory", "no processes", "no processes")] == [
        True,
        False,
        True,
        False,
    ]
    child.start(ScriptedProcess, 1_000)
    assert child.is_news("no processes")


def test_a_child_is_killed_once_and_a_dead_one_gets_no_signal() -> None:
    child, process = Child("c", position.BACK_OFF), ScriptedProcess()
    child.kill("it does not run")
    child.start(lambda: process, 1_000)
    assert child.killed == ""
    child.kill("stalled")
    child.kill("again")
    assert child.killed == "stalled"
    process.code = -9
    assert child.ended(1_100) == -9
    child.send(signal.SIGTERM)
    assert process.signals == [signal.SIGKILL]
    child.start(ScriptedProcess, 1_200)
    assert child.killed == ""


def test_the_next_start_is_that_of_the_child_that_is_due_first() -> None:
    running, first, second = (Child(name, position.BACK_OFF) for name in "abc")
    running.start(ScriptedProcess, 1_000)
    first.start_at_ms, second.start_at_ms = 2_000, 3_000
    assert (next_start_ms([running, second, first]), next_start_ms([running])) == (2_000, None)
