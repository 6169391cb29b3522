"""Rows from Redis's answers, a line a case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oarlock.broker.looks.history import Triggers
from oarlock.broker.looks.views import lock_view
from oarlock.cli.watch.fleet_look import KeyLook, TroubleLook, WorkerLook
from oarlock.cli.watch.rows import (
    Kept,
    QueueLists,
    locked_keys,
    locked_row,
    oldest_first,
    trouble_rows,
    waiting_rows,
    worker_rows,
    worst_first,
    writes_in,
)

NOW = 100_000
NONE: Any = (None, None, None, None, None, None, None, None)
SAMPLE = [b"a/x", b"queued 99000 2 asked, due", b"a/p", b"parked"]
ASKED = Triggers(1, "asked", "asked")


def lists(**given: Any) -> QueueLists:
    empty: dict[str, Any] = {
        "queued": {},
        "delayed": {},
        "parked": {},
        "failing": {},
        "sample": {},
        "total": 0,
        "held": [],
    }
    return QueueLists(**empty | given)


def lock(key: str, holder: str, since_ms: int, why: str = "") -> Any:
    words = f"holder={holder} nonce=n since_ms={since_ms} why={why}"
    return lock_view("rs", key, words.encode(), NOW + 4_000, NOW)


def test_lists_of_answers() -> None:
    entry = [b"99000-0", [b"key", b"a/x"]]
    answers = [
        [entry],
        [b"a/y", b"300099500"],
        [b"a/d", b"105000"],
        [b"a/p", b"1.3e+05"],
        [b"a/f", b"4"],
        SAMPLE,
        2,
        [b"a/z", b"a/h"],
    ]
    assert QueueLists.of(answers, 200_000) == lists(
        queued={"a/x": 99_000, "a/y": 99_500},
        delayed={"a/d": 105_000},
        parked={"a/p": 130_000},
        failing={"a/f": 4},
        sample={"a/x": Triggers(2, "asked", "due"), "a/p": None},
        total=2,
        held=["a/h", "a/z"],
    )
    assert QueueLists.of(NONE, 200_000) == lists()


def test_leases_by_queue() -> None:
    assert locked_keys([b"rs:a/x", b"7", b"nodes:n:1", b"8"]) == {"rs": {"a/x": 7}, "nodes": {"n:1": 8}}
    assert locked_keys(None) == {}


@pytest.mark.parametrize(
    ("given", "states", "expected"),
    [
        pytest.param(
            {"queued": {"a/x": 99_000}},
            [b"queued 98000 1 asked"],
            [KeyLook("0", "rs", "a/x", "queued", 2_000, None, ASKED)],
            id="as old as what queued it",
        ),
        pytest.param(
            {"queued": {"a/x": 99_000}},
            [b"queued"],
            [KeyLook("0", "rs", "a/x", "queued", 1_000)],
            id="nothing says why: as old as its entry",
        ),
        pytest.param({"queued": {"a/x": 99_000}}, [b"running 98000 1 asked"], [], id="claimed meanwhile"),
        pytest.param({"queued": {"a/x": 99_000}}, [None], [], id="idle meanwhile"),
        pytest.param({"queued": {"a/x": 99_000}}, [], [], id="states that could not be read"),
        pytest.param(
            {"delayed": {"a/d": 105_000}}, [], [KeyLook("0", "rs", "a/d", "delayed", None, 5_000)], id="delayed"
        ),
        pytest.param(
            {"queued": {"a/x": 200_000}},
            [b"queued 200000 1 asked"],
            [KeyLook("0", "rs", "a/x", "queued", 0, None, ASKED)],
            id="a clock that went back",
        ),
    ],
)
def test_waiting_keys(given: dict[str, Any], states: list[bytes | None], expected: list[KeyLook]) -> None:
    assert waiting_rows("0", "rs", lists(**given), states, NOW) == expected


@pytest.mark.parametrize(
    ("why", "age_ms", "triggers"),
    [("", 1_000, None), ("95000 1 asked", 5_000, ASKED), ("99500 1 asked", 1_000, ASKED)],
)
def test_a_key_in_work_is_as_old_as_what_queued_it(why: str, age_ms: int, triggers: Triggers | None) -> None:
    expected = KeyLook("0", "rs", "a/x", "running", age_ms, None, triggers)
    assert locked_row("0", lock("a/x", "w", 99_000, why), NOW) == expected


def test_the_oldest_keys_come_first_and_the_delayed_last() -> None:
    keys = [
        KeyLook("0", "rs", "late", "delayed", None, 9_000),
        KeyLook("0", "rs", "soon", "delayed", None, 1_000),
        KeyLook("0", "rs", "second", "queued", 5),
        KeyLook("0", "rs", "third", "queued", 5),
        KeyLook("0", "rs", "first", "running", 7),
    ]
    assert [each.key for each in oldest_first(keys, 10)] == ["first", "second", "third", "soon", "late"]
    assert [each.key for each in oldest_first(keys, 2)] == ["first", "second"]


@pytest.mark.parametrize(
    ("holders", "waiters", "locks", "expected"),
    [
        pytest.param(None, None, [], [], id="nobody"),
        pytest.param([b"w", b"supervisor=s since_ms=1"], [b"w", b"100001"], [], [("w", "s", "idle")], id="idle"),
        pytest.param(
            [b"w", b"supervisor=s since_ms=1"], [b"w", b"99999"], [], [("w", "s", "between")], id="waits no longer"
        ),
        pytest.param(
            [b"w", b"supervisor=s since_ms=1"],
            [],
            [lock("a/new", "w", 99_000), lock("a/old", "w", 98_000)],
            [
                ("w", "s", "working", "rs", "a/old", 2_000, 4_000, None, None),
                ("w", "s", "working", "rs", "a/new", 1_000, 4_000, 2, None),
            ],
            id="a line a key, the one held longest first",
        ),
        pytest.param(
            [],
            [],
            [lock("a/new", "gone", 99_000)],
            [("gone", "", "working", "rs", "a/new", 1_000, 4_000, 2, None)],
            id="a lock of a worker that has left",
        ),
    ],
)
def test_workers(holders: Any, waiters: Any, locks: list[Any], expected: list[tuple[Any, ...]]) -> None:
    found = worker_rows("0", holders, waiters, locks, {("rs", "a/new"): 2}, NOW)
    up_ms = NOW - 1 if holders else None
    assert found == [replace(WorkerLook("0", *each), up_ms=up_ms) for each in expected]


HISTORY = b"99000 w-\nValueError: no size < retry 98995 1000+1000 1/0 1 asked\n- < 0 1+1 1/0 1 due"


def test_trouble() -> None:
    given = lists(parked={"a/p": 130_000}, failing={"a/f": 4, "a/p": 1, "a/q": 2})
    assert given.trouble == ["a/p", "a/f", "a/q"]
    kept = Kept([], [], [b"2", None, None], [None, HISTORY, None], [None, b"1.09e+05", None])
    assert trouble_rows("0", "rs", given, kept, NOW) == [
        TroubleLook("0", "rs", "a/p", "parked", 1, 2, 30_000),
        TroubleLook("0", "rs", "a/f", "failing", 4, 0, 9_000, "ValueError: no size", 1_000),
        TroubleLook("0", "rs", "a/q", "failing", 2),
    ]
    nothing_kept = trouble_rows("0", "rs", lists(failing={"a/f": 4}), Kept([], [], [], [], []), NOW)
    assert nothing_kept == [TroubleLook("0", "rs", "a/f", "failing", 4)]


def test_parked_keys_come_first_and_then_those_that_failed_most() -> None:
    rows = [TroubleLook("0", "rs", "a", "failing", 2), TroubleLook("0", "rs", "b", "failing", 9)]
    rows += [TroubleLook("0", "rs", "c", "parked", 0, 1), TroubleLook("0", "rs", "d", "parked", 0, 3)]
    assert [each.key for each in worst_first(rows)] == ["d", "c", "b", "a"]


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        (None, 0),
        ([b"owner", b"u"], 0),
        ([b"owner", b"u", b"create pods/a", b"pending since_ms=1 sent_ms=1 tries=1"], 1),
        ([b"delete pods/a", b"pending uid=u", b"delete pods/b", b"answered uid=u", b"reserved pods/c", b"over"], 1),
    ],
)
def test_writes(fields: Any, count: int) -> None:
    assert writes_in(fields) == count


def test_what_is_held_comes_last_and_leaves_room_for_the_rest() -> None:
    held = [KeyLook("0", "rs", f"h{n}", "held", 90_000, paused="all, by me") for n in range(9)]
    rest = [KeyLook("0", "rs", f"q{n:02}", "queued", n) for n in range(30)]
    shown = oldest_first([*held, *rest], 20)
    assert [each.key for each in shown[-3:]] == ["q12", "h0", "h1"]
    assert [each.key for each in oldest_first(held, 20)] == ["h0", "h1"]
