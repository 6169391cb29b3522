"""Weights that people set: how many keys of a namespace a round of the backlog has."""

from __future__ import annotations

from collections import Counter
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.broker.memory.state import FRONT, STEPS
from oarlock.broker.pauses import note
from oarlock.broker.values.claims import Batch, Idle, LoadSpec
from tests.broker import broker_state
from tests.broker.broker_cases import QUEUE, SPECS, Case, MemoryCase, claim, claim_reply, finish, opened

TRIGGERS = ("asked", "status replicasets/ns/below", "due", "list replicasets")
"""One of each lane."""


def weigh(case: Case, whose: str, weight: str) -> None:
    """Of a namespace, or of "queue QUEUE"."""
    act, scope = "resume" if weight == "none" else "set", whose if " " in whose else f"namespace {whose}"
    assert case.worker.steer(act, f"weight {scope}", note("me", f"weight={weight} why")) is not None


def filled(case: Case) -> Case:
    """The front is full, of keys that are claimed first."""
    case = opened(case)
    case.worker.add(QUEUE, [f"front/{number}" for number in range(FRONT)])
    return case


def many(case: Case, namespace: str, count: int, lane: int = 0, first: int = 0) -> None:
    names = [f"{namespace}/{lane}-{number:05}" for number in range(first, first + count)]
    case.worker.add(QUEUE, names, why=TRIGGERS[lane])


def served(case: Case, keys_max: int) -> list[str]:
    claims = claim(case, keys_max=keys_max)
    for one in claims:
        finish(case, one)
    return [one.key for one in claims]


def shares(case: Case, keys_max: int, *, front: bool = True) -> Counter[str]:
    """How many of the next keys are of which namespace, behind the front."""
    if front:
        assert len(served(case, FRONT)) == FRONT
    return Counter(key.partition("/")[0] for key in served(case, keys_max))


def test_claims_are_shared_by_weight(queue_case: Case) -> None:
    """The flood that came first is not served first."""
    case = filled(queue_case)
    weigh(case, "a", "3")
    many(case, "b", 1_000)
    many(case, "a", 1_000)
    assert shares(case, 400) == {"a": 300, "b": 100}
    assert broker_state.problems(case.state()) == []


@pytest.mark.parametrize(("weight", "lighter"), [("0.5", 10), ("0.1", 2), ("0.001", 2)])
def test_a_namespace_with_little_weight_waits_and_does_not_starve(queue_case: Case, weight: str, lighter: int) -> None:
    case = filled(queue_case)
    weigh(case, "b", weight)
    many(case, "b", 100)
    many(case, "a", 200)
    assert shares(case, 20 + lighter) == {"a": 20, "b": lighter}


@pytest.mark.parametrize("weight", ["none", "0", "-3", "nan", "1e2", "x"])
def test_without_a_weight_it_is_one(queue_case: Case, weight: str) -> None:
    case = filled(queue_case)
    weigh(case, "a", "5")
    weigh(case, "a", weight)
    many(case, "b", 100)
    many(case, "a", 100)
    assert shares(case, 60) == {"a": 30, "b": 30}


def test_a_weight_is_of_each_lane(queue_case: Case) -> None:
    case = filled(queue_case)
    weigh(case, "a", "2")
    for namespace in "ab":
        many(case, namespace, 100, lane=3)
        many(case, namespace, 100, lane=0)
    order = Counter(key[:3] for key in (*served(case, FRONT), *served(case, 60)) if key[0] != "f")
    assert order == {"a/0": 32, "b/0": 16, "a/3": 8, "b/3": 4}


def test_a_weight_counts_for_keys_that_come_after_it(queue_case: Case) -> None:
    """Those that wait keep their places. A round then has one of them, four that came later, and one of the other."""
    case = filled(queue_case)
    many(case, "a", 40)
    many(case, "b", 40)
    weigh(case, "a", "4")
    many(case, "a", 400, first=40)
    many(case, "b", 400, first=40)
    assert len(served(case, FRONT)) == FRONT
    order = served(case, 240)
    assert {f"a/0-{number:05}" for number in range(40)} < set(order)
    light = [key for key in order if key[0] == "b"]
    assert light == [f"b/0-{number:05}" for number in range(len(light))]
    assert len(light) >= 40
    assert shares(case, 100, front=False) == {"a": 80, "b": 20}


def test_a_namespace_that_is_heavy_gets_nothing_for_the_time_it_was_idle(queue_case: Case) -> None:
    case = filled(queue_case)
    weigh(case, "a", "4")
    many(case, "b", 300)
    assert shares(case, 100) == {"b": 100}
    many(case, "a", 300)
    assert shares(case, 100, front=False) == {"a": 80, "b": 20}


QUEUES = (QUEUE, "daemonset", "deployment")


def controllers(case: Case, keys: int = 600, without: tuple[str, ...] = ()) -> Case:
    """So many keys of each controller wait."""
    opened(case, holders=())
    case.worker.register("w1", "supervisor", QUEUES)
    for queue in QUEUES:
        if queue not in without:
            case.worker.add(queue, [f"ns/{number}" for number in range(keys)])
    return case


def of_controllers(case: Case, claims: int, keys_max: int = 8) -> Counter[str]:
    """How many keys of which controller that many claims take, of a worker that turns its queues as workers do."""
    specs, found = [SPECS[0], *(LoadSpec(queue, "replicasets") for queue in QUEUES[1:])], Counter[str]()
    for _ in range(claims):
        specs.append(specs.pop(0))
        reply = claim_reply(case, specs=tuple(specs), keys_max=keys_max)
        assert isinstance(reply, Batch)
        for one in reply.claims:
            finish(case, one)
        found[reply.queue] += len(reply.claims)
    return found


def test_controllers_share_claims_by_weight(queue_case: Case) -> None:
    case = controllers(queue_case)
    weigh(case, f"queue {QUEUE}", "4")
    found = of_controllers(case, 60)
    assert found == {QUEUE: 320, "daemonset": 80, "deployment": 80}


def test_a_light_controller_does_not_starve(queue_case: Case) -> None:
    case = controllers(queue_case)
    weigh(case, "queue daemonset", "0.1")
    assert of_controllers(case, 42, keys_max=2) == {QUEUE: 40, "deployment": 40, "daemonset": 4}


def test_a_controller_without_keys_saves_nothing_up(queue_case: Case) -> None:
    case = controllers(queue_case, without=("daemonset",))
    weigh(case, f"queue {QUEUE}", "2")
    assert of_controllers(case, 30) == {QUEUE: 160, "deployment": 80}
    case.worker.add("daemonset", [f"ns/{number}" for number in range(600)])
    found = of_controllers(case, 40)
    assert found == {QUEUE: 152, "deployment": 80, "daemonset": 88}, "but for a claim's worth"


def test_without_a_weight_of_a_controller_claims_go_round(queue_case: Case) -> None:
    case = controllers(queue_case)
    weigh(case, "ns", "4")
    assert of_controllers(case, 30) == dict.fromkeys(QUEUES, 80)
    assert "strides" not in case.state()


def test_a_weight_of_a_controller_ends(queue_case: Case) -> None:
    case = controllers(queue_case)
    weigh(case, f"queue {QUEUE}", "8")
    of_controllers(case, 10)
    weigh(case, f"queue {QUEUE}", "none")
    assert of_controllers(case, 30) == dict.fromkeys(QUEUES, 80)


def test_a_heavy_controller_that_is_paused_is_passed_over(queue_case: Case) -> None:
    case = controllers(queue_case)
    weigh(case, f"queue {QUEUE}", "8")
    case.worker.steer("pause", f"queue {QUEUE}", note("me", ""))
    assert of_controllers(case, 20) == {"daemonset": 80, "deployment": 80}
    case.worker.steer("pause", "all", note("me", ""))
    assert claim_reply(case) is Idle.WAIT


@settings(max_examples=150, deadline=None)
@given(
    weights=st.dictionaries(st.sampled_from("abc"), st.sampled_from(("0.1", "0.3", "2.5", "8", "100"))),
    steps=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(0, 30), st.integers(0, 9)), max_size=30
    ),
)
def test_how_long_a_key_waits_is_bounded_when_it_comes(
    weights: dict[str, str], steps: list[tuple[str, int, int, int]]
) -> None:
    """Of each other namespace and lane, at most as many keys are before it as those have in its rounds."""
    case, number, done = opened(MemoryCase()), 0, list[str]()
    for namespace, weight in weights.items():
        weigh(case, namespace, weight)
    bounds: dict[str, float] = {}
    waited: dict[str, Counter[tuple[str, int]]] = {}

    def class_of(key: str) -> tuple[str, int]:
        return key[0], int(key[2])

    def rounds_of(namespace: str, lane: int) -> float:
        return STEPS[lane] / float(weights.get(namespace, "1"))

    for namespace, lane, count, some in steps:
        for _ in range(count):
            key = f"{namespace}/{lane}-{number:05}"
            number += 1
            waiting = case.state().get("backlog", {}).get(QUEUE, {})
            case.worker.add(QUEUE, [key], why=TRIGGERS[lane])
            if key in case.state().get("backlog", {}).get(QUEUE, {}):
                same = sum(class_of(each) == (namespace, lane) for each in waiting)
                bounds[key] = (1 + same) * rounds_of(namespace, lane)
                waited[key] = Counter()
        backlog = set(case.state().get("backlog", {}).get(QUEUE, {}))
        for key in served(case, some) if some else []:
            done.append(key)
            rounds = bounds.pop(key, None)
            if rounds is not None:
                for each, times in waited.pop(key).items():
                    most = (ceil(rounds) + 1) / rounds_of(*each) + 1
                    assert each == class_of(key) or times <= most, (key, each, times, most)
            for other in waited.values():
                if key in backlog:
                    other[class_of(key)] += 1
    while keys := served(case, 8):
        done += keys
    assert len(done) == len(set(done)) == number
