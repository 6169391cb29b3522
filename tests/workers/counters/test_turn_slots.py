"""The shared memory through which a supervisor sees what its workers do."""

from __future__ import annotations

import os

import pytest

from oarlock.workers.counters.turn_slots import TASK_BYTES_MAX, Doing, TurnSlots


def test_a_slot_says_what_was_written_last_and_leaves_its_neighbours_alone() -> None:
    slots = TurnSlots(3)
    slots[0].begin(7, "replicaset:a/first")
    slots[1].begin(8, "replicaset:default/web-with-a-long-name")
    slots[1].begin(9, "replicaset:b/c")
    slots[2].begin(10)
    assert [slots[i].read() for i in range(3)] == [
        Doing(7, "replicaset:a/first"),
        Doing(9, "replicaset:b/c"),
        Doing(10, ""),
    ]
    slots[1].end()
    assert slots[1].read() == Doing(0, "")
    assert slots[0].read() == Doing(7, "replicaset:a/first")


def test_a_worker_has_proven_itself_when_a_claim_of_its_was_answered() -> None:
    slots, proven = TurnSlots(2), []
    for steps in ("begin", "begin end", "begin turn", "begin leave"):
        slot = slots[0]
        slot.reset()
        for step in steps.split():
            if step in ("end", "leave"):
                slot.end() if step == "end" else slot.leave()
                assert slot.read() == Doing(0, "")
            else:
                slot.begin(1, "replicaset:a/b" if step == "turn" else "")
        proven.append(slots[0].proven)
    assert proven == [False, True, True, False]
    assert not slots[1].proven


@pytest.mark.parametrize(
    ("doing_ms", "now_ms", "stalled"),
    [
        pytest.param(1_000, 61_000, False, id="exactly at the limit"),
        pytest.param(1_000, 61_001, True, id="a millisecond more"),
        pytest.param(0, 10**12, False, id="idle never stalls"),
    ],
)
def test_stall(doing_ms: int, now_ms: int, stalled: bool) -> None:
    slot = TurnSlots(1)[0]
    slot.begin(doing_ms, "replicaset:a/b")
    assert slot.stalled(now_ms, 60_000) is stalled


def test_a_task_longer_than_the_slot_is_cut_not_spilled() -> None:
    slots = TurnSlots(2)
    slots[1].begin(5, "next")
    slots[0].begin(5, "x" * 5_000)
    assert slots[0].read().task == "x" * TASK_BYTES_MAX
    assert slots[1].read() == Doing(5, "next")


def test_a_slot_that_does_not_exist_is_refused() -> None:
    with pytest.raises(IndexError):
        TurnSlots(2)[2]


def test_another_process_reads_what_this_one_wrote_and_the_other_way_round() -> None:
    slots = TurnSlots(2)
    slots[0].begin(11, "replicaset:from/parent")
    pid = os.fork()
    if pid == 0:
        seen = slots[0].read() == Doing(11, "replicaset:from/parent")
        slots[1].begin(12, "replicaset:from/child" if seen else "")
        os._exit(0)
    os.waitpid(pid, 0)
    assert slots[1].read() == Doing(12, "replicaset:from/child")


def test_readings_while_another_process_writes_are_never_a_mixture() -> None:
    """Tasks of one letter each: a mixture would show two letters, or a letter that does not belong to its time."""
    slots = TurnSlots(1)
    pid = os.fork()
    if pid == 0:
        slot = slots[0]
        for turn in range(60_000):
            slot.begin(1 + turn % 26, chr(97 + turn % 26) * (1 + turn * 7 % 300))
        os._exit(0)
    readings = 0
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        since_ms, task = slots[0].read()
        if since_ms:
            assert set(task) == {chr(96 + since_ms)}
            assert len(task) <= 300
            readings += 1
    assert readings > 100


class _Dies(Exception):
    pass


class _DyingWords:
    """The words of a slot, in a process that dies before its ``writes``-th write of one."""

    def __init__(self, words: memoryview, writes: int) -> None:
        self._words, self._left = words, writes

    def __getitem__(self, at: int) -> int:
        return self._words[at]

    def __setitem__(self, at: int, value: int) -> None:
        self._left -= 1
        if not self._left:
            raise _Dies
        self._words[at] = value


@pytest.mark.parametrize("writes", [2, 3, 4])
def test_a_worker_that_died_while_writing_blames_no_key(writes: int) -> None:
    slots = TurnSlots(1)
    slots[0].begin(5, "replicaset:from/earlier")
    dying = slots[0]
    dying._words = _DyingWords(dying._words, writes)  # type: ignore[assignment]
    with pytest.raises(_Dies):
        dying.begin(7, "replicaset:from/one")
    assert slots[0].read() == Doing(0, "")
    slots[0].reset()
    assert slots[0].read() == Doing(0, "")
    slots[0].begin(9, "replicaset:from/two")
    assert slots[0].read() == Doing(9, "replicaset:from/two")
