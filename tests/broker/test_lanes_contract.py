"""Lanes: what people ask for comes before what follows from it, and that before what is merely looked at again."""

from __future__ import annotations

from collections import Counter
from math import ceil

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oarlock.broker.looks.history import Queued
from oarlock.broker.memory.state import FRONT, ROUND, STEPS
from oarlock.broker.values.claims import Batch
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Change, Verdict
from tests.broker import broker_state
from tests.broker.broker_cases import QUEUE, Case, MemoryCase, claim, claim_reply, finish, opened

TRIGGERS = ("asked", "status replicasets/a/below", "due", "list replicasets")
"""One of each lane."""


def filled(case: Case) -> Case:
    """The front is full, of keys that are claimed first."""
    case = opened(case)
    case.worker.add(QUEUE, [f"front/{number}" for number in range(FRONT)])
    return case


def served(case: Case, keys_max: int) -> list[str]:
    claims = claim(case, keys_max=keys_max)
    for one in claims:
        finish(case, one)
    return [one.key for one in claims]


def behind_the_front(case: Case, keys_max: int) -> list[str]:
    assert len(served(case, FRONT)) == FRONT
    return served(case, keys_max)


def many(case: Case, namespace: str, lane: int, count: int) -> None:
    case.worker.add(QUEUE, [f"{namespace}/{lane}-{number:05}" for number in range(count)], why=TRIGGERS[lane])


def lane_of(key: str) -> int:
    return int(key.partition("/")[2][0])


def test_what_people_ask_for_is_before_a_resync(queue_case: Case) -> None:
    case = filled(queue_case)
    many(case, "a", 3, 300)
    case.advance(50)
    many(case, "a", 0, 1)
    assert behind_the_front(case, 2) == ["a/0-00000", "a/3-00000"]


def test_it_is_before_the_resync_of_many_namespaces(queue_case: Case) -> None:
    case = filled(queue_case)
    for number in range(60):
        many(case, f"team-{number:02}", 3, 3)
    case.advance(50)
    many(case, "team-07", 0, 1)
    many(case, "team-08", 2, 1)
    many(case, "team-09", 1, 1)
    order = behind_the_front(case, 4)
    assert order == ["team-07/0-00000", "team-09/1-00000", "team-08/2-00000", "team-00/3-00000"]


def test_every_lane_has_its_share(queue_case: Case) -> None:
    case = filled(queue_case)
    for lane in (3, 2, 1, 0):
        many(case, "a", lane, 100)
    order = behind_the_front(case, 12 + 24 + 16 + 3)
    assert Counter(map(lane_of, order)) == {0: 12, 1: 24, 2: 16, 3: 3}, "in 12 rounds"
    for lane in range(4):
        mine = [key for key in order if lane_of(key) == lane]
        assert mine == sorted(mine), "first come, first served"


def test_a_resync_does_not_starve_under_a_flood_that_never_ends(queue_case: Case) -> None:
    case = filled(queue_case)
    many(case, "a", 0, 40)
    case.worker.add(QUEUE, ["b/3-resync"], why=TRIGGERS[3])
    order = behind_the_front(case, 4)
    assert "b/3-resync" in order, "its namespace had nothing, so it is in the round that is served"
    case.worker.add(QUEUE, ["b/3-again"], why=TRIGGERS[3])
    for number in range(6):
        case.worker.add(QUEUE, [f"a/0-late-{number}"])
        order += served(case, 1)
    assert "b/3-again" in order, "four rounds later"


@pytest.mark.parametrize(
    ("trigger", "lane"),
    [
        *(("asked", 0), ("asked by me", 0), ("resumed", 0), ("lost w-1 1800000000000", 0)),
        *(("set replicasets/a/k", 0), ("del replicasets/a/k", 0), ("added replicasets/a/k", 0)),
        ("status replicasets/a/k", 1),
        *(("due", 2), ("read pods", 2), ("parked", 2), ("set pods/a/k-1", 2)),
        *(("del pods/a/k-1", 2), ("orphans", 2), ("stat", 2), ("deployment a/k", 2), ("replicaset a/k", 2)),
        *(("list pods", 3), ("anew", 3), ("observed replicasets/a/k", 3), ("added pods/a/k-1", 3)),
    ],
)
def test_the_lane_of_each_trigger(queue_case: Case, trigger: str, lane: int) -> None:
    """At once, and where it is not the first."""
    case = filled(queue_case)
    case.worker.add(QUEUE, ["a/k"], why=trigger)
    place = case.state()["backlog"][QUEUE]["a/k"]
    assert place % ROUND // (ROUND // len(STEPS)) == lane
    for namespace, first in (("b", "list pods"), ("c", "due")):
        key = f"{namespace}/k"
        case.worker.add(QUEUE, [key], why=first)
        case.worker.add(QUEUE, [key], why=trigger.replace("/a/", f"/{namespace}/"))
        place = case.state()["backlog"][QUEUE][key]
        assert place % ROUND // (ROUND // len(STEPS)) == min(lane, 2 if first == "due" else 3)


@pytest.mark.parametrize("trigger", ["asked", f"set {QUEUE}s/a/3-00250", f"del {QUEUE}s/a/3-00250"])
def test_a_key_that_is_asked_for_moves_up(queue_case: Case, trigger: str) -> None:
    case = filled(queue_case)
    many(case, "a", 3, 300)
    case.worker.add(QUEUE, ["a/3-00250"], why=trigger)
    case.worker.add(QUEUE, ["a/3-00250"], why=trigger)
    assert broker_state.problems(case.state()) == []
    assert behind_the_front(case, 2) == ["a/3-00250", "a/3-00000"]
    assert len(behind := served(case, 400)) == 298, behind


def test_it_moves_up_lane_by_lane_and_never_down(queue_case: Case) -> None:
    case = filled(queue_case)
    many(case, "a", 3, 30)
    many(case, "a", 2, 9)
    many(case, "a", 1, 4)
    key, places = "a/3-00029", []
    for trigger in ("list replicasets", "set pods/a/p", "list pods", TRIGGERS[1], "due", "asked", "due", TRIGGERS[1]):
        case.worker.add(QUEUE, [key], why=trigger)
        places.append(broker_state.queued(case.state(), QUEUE).index(key) - FRONT)
    assert places == [42, 15, 15, 8, 8, 0, 0, 0]


def test_of_a_key_in_its_turn_the_most_urgent_trigger_counts(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["a/key"])
    (turn,) = claim(case)
    many(case, "a", 3, FRONT + 20)
    many(case, "a", 2, 20)
    for trigger in ("list replicasets", "due", f"set {QUEUE}s/a/key", "set pods/a/p", "list pods"):
        case.worker.add(QUEUE, ["a/key"], why=trigger)
    finish(case, turn)
    assert behind_the_front(case, 1) == ["a/key"]


def test_a_trigger_that_is_less_urgent_does_not_take_the_place_of_the_last(queue_case: Case) -> None:
    case = opened(queue_case)
    for trigger in ("due", "asked", "due"):
        case.worker.add(QUEUE, ["a/key"], why=trigger)
    reply = claim_reply(case)
    assert isinstance(reply, Batch)
    queued = Queued.parse(reply.claims[0].why)
    assert queued is not None
    assert queued.triggers == (3, "due", "asked")


def test_an_event_of_the_object_itself_is_before_those_of_its_children(queue_case: Case) -> None:
    case = filled(queue_case)
    many(case, "a", 3, 9)
    for rv, name in ((101, "a/p"), (102, "a/own")):
        event = Event(name, str(rv), f"u-{rv}", b"{}", wakes=(f"{QUEUE}:a/of-pods",))
        case.ingestor.ingest("pods", str(rv - 1), str(rv), [event])
    case.ingestor.ingest("replicasets", "100", "101", [Event("a/own", "101", "u", b"{}", wakes=(f"{QUEUE}:a/own",))])
    assert behind_the_front(case, 3) == ["a/own", "a/of-pods", "a/3-00000"]


def told(case: Case, rv: int, resource: str, name: str, *keys: str, change: str = "observed") -> None:
    """An event of an object that wakes these keys; its own is the first."""
    wakes = tuple(f"{QUEUE}:{key}" for key in keys)
    case.ingestor.ingest(
        resource, str(rv - 1), str(rv), [Event(name, str(rv), f"u-{rv}", b"{}", (), wakes, change=change)]
    )


def test_an_own_status_is_looked_at_anew(queue_case: Case) -> None:
    """Many owners are asked for at once. Those that have been served, and have their status, wait with the resyncs, not
    behind all the others. From there their children bring them forward.
    """
    case = filled(queue_case)
    many(case, "a", 0, 40)
    for rv in range(101, 111):
        told(case, rv, "replicasets", f"a/told-{rv}", f"a/told-{rv}")
    told(case, 111, "replicasets", "a/0-asked", "a/0-asked", change="set")
    case.worker.add(QUEUE, ["a/told-110"], why="set pods/a/p")
    order = behind_the_front(case, 51)
    assert [order.index(f"a/told-{rv}") for rv in (101, 102, 103)] == [2, 7, 12]
    assert order.index("a/told-110") == 1
    assert order[-1] == "a/0-asked"


def test_what_has_come_as_asked_for_waits_with_the_resyncs(queue_case: Case) -> None:
    """It will change, and then its owner has something to tell."""
    case = filled(queue_case)
    many(case, "a", 2, 9)
    told(case, 101, "pods", "a/new", "a/owner-of-new", change="added")
    told(case, 102, "pods", "a/old", "a/owner-of-old", change="set")
    told(case, 101, "replicasets", "a/own", "a/own", change="added")
    order = behind_the_front(case, 12)
    assert order[:4] == ["a/own", "a/2-00000", "a/2-00001", "a/owner-of-new"]
    assert order[-1] == "a/owner-of-old"


def test_one_whose_name_is_cut_off_may_be_the_own(queue_case: Case) -> None:
    """A trigger has 160 bytes at most. Nobody asked for the key but by coming."""
    case, key = filled(queue_case), "a/" + "n" * 200
    many(case, "a", 3, 20)
    told(case, 101, "replicasets", key, key, change="added")
    assert behind_the_front(case, 1) == [key]


def test_a_status_below_is_before_what_else_follows(queue_case: Case) -> None:
    """Whose objects have a status has a status of its own to tell, also where they are named as it is."""
    case = filled(queue_case)
    for lane in (0, 2, 3):
        many(case, "a", lane, 9)
    told(case, 101, "deployments", "a/above", "a/above")
    told(case, 101, "replicasets", "a/above", "a/below", "a/above")
    assert behind_the_front(case, 3) == ["a/0-00000", "a/above", "a/2-00000"]


def test_a_status_that_was_waited_for_takes_no_place_among_the_resyncs(queue_case: Case) -> None:
    """The cache passes it as its event comes, and that is more urgent. A place that it had first would stay empty."""
    case = opened(queue_case)
    case.worker.add(QUEUE, ["a/own"])
    (turn,) = claim(case)
    finish(case, turn, Verdict.OK, None, Change.min_rv("replicasets", "101"))
    case.worker.add(QUEUE, [f"front/{number}" for number in range(FRONT)])
    many(case, "a", 3, 3)
    told(case, 101, "replicasets", "a/own", "a/own")
    case.worker.add(QUEUE, ["a/3-last"], why=TRIGGERS[3])
    rounds = {key: place // ROUND for key, place in backlog_of(case).items()}
    assert rounds == {"a/own": 0, "a/3-00000": 0, "a/3-00001": 4, "a/3-00002": 8, "a/3-last": 12}
    assert behind_the_front(case, 1) == ["a/own"]


def test_a_late_key_does_not_wait_for_places_that_keys_left_when_they_moved_up(queue_case: Case) -> None:
    """Of a resync of 200 objects each is asked for. The next one waits for as many places as keys wait, not for 200."""
    case = filled(queue_case)
    many(case, "a", 3, 200)
    case.worker.add(QUEUE, [f"a/3-{number:05}" for number in range(200)])
    assert len(behind_the_front(case, 190)) == 190
    case.worker.add(QUEUE, ["a/3-late"], why=TRIGGERS[3])
    order = []
    for number in range((10 + 1) * int(STEPS[3]) + 2 * 10 + 1):
        case.worker.add(QUEUE, [f"z/0-{number:05}"])
        order += served(case, 1)
    assert "a/3-late" in order


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(0, 30), st.integers(0, 9)), max_size=30
    )
)
@example(
    [
        *(("a", 0, 30, 0), ("a", 0, 2, 0), ("a", 3, 1, 0), ("c", 3, 1, 0), ("a", 0, 0, 9), ("a", 0, 0, 9)),
        *(("a", 0, 0, 9), ("a", 0, 0, 5), ("a", 0, 0, 1), ("b", 1, 10, 0), ("a", 3, 1, 0), ("a", 0, 0, 9)),
        ("a", 0, 0, 9),
    ]
)
@example(
    [
        *(("a", 0, 30, 0), ("a", 0, 2, 0), ("a", 1, 2, 0), ("c", 1, 1, 0), ("a", 0, 0, 9), ("a", 0, 0, 9)),
        *(("a", 0, 0, 9), ("a", 0, 0, 5), ("a", 0, 0, 2), ("b", 0, 2, 0), ("a", 1, 1, 0), ("a", 0, 0, 9)),
    ]
)
def test_how_long_a_key_waits_is_bounded_when_it_comes(steps: list[tuple[str, int, int, int]]) -> None:
    """Whatever comes after it: of each other class, at most as many keys as that class may have in its rounds."""
    case, number, done = opened(MemoryCase()), 0, list[str]()
    bounds: dict[str, float] = {}
    waited: dict[str, Counter[tuple[str, int]]] = {}

    def class_of(key: str) -> tuple[str, int]:
        return key[0], lane_of(key)

    for namespace, lane, count, some in steps:
        for _ in range(count):
            key = f"{namespace}/{lane}-{number:05}"
            number += 1
            waiting = case.state().get("backlog", {}).get(QUEUE, {})
            case.worker.add(QUEUE, [key], why=TRIGGERS[lane])
            if key in case.state().get("backlog", {}).get(QUEUE, {}):
                bounds[key] = (1 + sum(class_of(each) == (namespace, lane) for each in waiting)) * STEPS[lane]
                waited[key] = Counter()
        backlog = set(case.state().get("backlog", {}).get(QUEUE, {}))
        for key in served(case, some) if some else []:
            done.append(key)
            rounds = bounds.pop(key, None)
            if rounds is not None:
                for each, times in waited.pop(key).items():
                    assert each == class_of(key) or times <= (ceil(rounds) + 1) / STEPS[each[1]] + 1
            for other in waited.values():
                if key in backlog:
                    other[class_of(key)] += 1
    while keys := served(case, 8):
        done += keys
    assert len(done) == len(set(done)) == number


def backlog_of(case: Case) -> dict[str, int]:
    """Key -> its place."""
    places: dict[str, int] = case.state().get("backlog", {}).get(QUEUE, {})
    return dict(places)


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(0, 3), st.integers(1, 9), st.integers(0, 5)),
        max_size=40,
    )
)
def test_no_key_is_lost_or_served_twice_however_it_moves(steps: list[tuple[str, int, int, int, int]]) -> None:
    """A key is asked for in any lane, wherever it is. Its place never becomes a later one."""
    case, wanted = opened(MemoryCase()), set[str]()
    for namespace, first, lane, count, some in steps:
        keys = [f"{namespace}/{number:03}" for number in range(first, first + count)]
        before, places = broker_state.queued(case.state(), QUEUE), backlog_of(case)
        front = len(before) - len(places)
        case.worker.add(QUEUE, keys, why=TRIGGERS[lane])
        wanted.update(keys)
        after, places_after = broker_state.queued(case.state(), QUEUE), backlog_of(case)
        assert sorted(after) == sorted({*before, *keys})
        assert after[:front] == before[:front]
        assert broker_state.problems(case.state()) == []
        for key, place in places.items():
            assert places_after[key] <= place if key in keys else places_after[key] == place
        taken = served(case, some) if some else []
        assert taken == after[: len(taken)]
        wanted.difference_update(taken)
    rest = []
    while keys := served(case, 8):
        rest += keys
    assert sorted(rest) == sorted(wanted)
