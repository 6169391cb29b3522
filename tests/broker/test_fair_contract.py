"""Who is served next when many keys are queued: each namespace in turn, and of a namespace the key that came first."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.memory.state import FRONT
from oarlock.broker.steps.refusals import BrokerFull
from oarlock.broker.values.claims import Batch
from oarlock.broker.values.errors import EpochOver
from tests.broker import broker_state
from tests.broker.broker_cases import QUEUE, START_MS, Case, MemoryCase, RedisCase, claim, claim_reply, finish, opened


def flood(case: Case, namespace: str, count: int, first: int = 0) -> None:
    case.worker.add(QUEUE, [f"{namespace}/{number:05}" for number in range(first, first + count)])


def served(case: Case, keys_max: int = 8) -> list[str]:
    """The keys of a claim, whose turns end at once."""
    claims = claim(case, keys_max=keys_max)
    for one in claims:
        finish(case, one)
    return [one.key for one in claims]


def namespaces(names: list[str]) -> str:
    return "".join(name.partition("/")[0] for name in names)


def test_a_lone_key_is_not_behind_a_flood(queue_case: Case) -> None:
    case = opened(queue_case)
    flood(case, "a", 500)
    case.worker.add(QUEUE, ["b/lone"])
    order = [name for _ in range(FRONT // 8 + 1) for name in served(case)]
    assert "b/lone" in order, "it follows the front, which was there before it"
    assert broker_state.problems(case.state()) == []


def test_namespaces_take_turns_and_a_late_one_has_its_share_at_once(queue_case: Case) -> None:
    case = opened(queue_case)
    flood(case, "a", FRONT + 40)
    assert namespaces(served(case, FRONT)) == "a" * FRONT
    assert namespaces(served(case, 4)) == "aaaa"
    flood(case, "b", 20)
    flood(case, "c", 3)
    assert Counter(namespaces(served(case, 9))) == {"a": 3, "b": 3, "c": 3}
    assert Counter(namespaces(served(case, 8))) == {"a": 4, "b": 4}


def test_within_a_namespace_the_first_to_come_is_the_first(queue_case: Case) -> None:
    case = opened(queue_case)
    for number in (3, 1, 2, 0):
        flood(case, "a", 25, first=number * 25)
    came = [*range(75, 100), *range(25, 50), *range(50, 75), *range(25)]
    assert [name for _ in range(13) for name in served(case)] == [f"a/{number:05}" for number in came]


def test_those_who_come_in_a_round_are_served_as_they_came(queue_case: Case) -> None:
    case = opened(queue_case)
    flood(case, "m", FRONT + 1)
    served(case, FRONT)
    for namespace in "zay":
        case.advance(1)
        case.worker.add(QUEUE, [f"{namespace}/1"])
    assert namespaces(served(case)) == "mzay"


def test_who_comes_back_at_once_waits_for_the_others(queue_case: Case) -> None:
    """Its next key comes a round later, though nothing of it is queued."""
    case = opened(queue_case)
    flood(case, "z", FRONT + 20)
    served(case, FRONT)
    order = []
    for _ in range(20):
        case.worker.add(QUEUE, ["a/again"])
        order += served(case, 1)
    assert namespaces(order).count("z") >= 9


def test_a_claim_takes_as_much_as_it_asks_for(queue_case: Case) -> None:
    case = opened(queue_case)
    flood(case, "a", 3 * FRONT)
    assert len(served(case, 2 * FRONT)) == 2 * FRONT


def test_the_rounds_begin_anew_once_nobody_waits(queue_case: Case) -> None:
    case = opened(queue_case)
    flood(case, "a", FRONT + 50)
    while served(case):
        pass
    assert "backlog" not in case.state()
    flood(case, "b", FRONT)
    flood(case, "b", 9, first=FRONT)
    flood(case, "a", 9)
    served(case, FRONT)
    assert Counter(namespaces(served(case, 8))) == {"a": 4, "b": 4}, "what a had before is forgotten"
    assert set(case.state()["rounds"][QUEUE]) <= {"0 a", "0 b"}


def test_a_namespace_that_has_gone_leaves_nothing(queue_case: Case) -> None:
    case = opened(queue_case)
    flood(case, "a", FRONT + 30)
    for number in range(50):
        case.worker.add(QUEUE, [f"gone-{number}/x"])
    served(case, FRONT)
    for _ in range(8):
        served(case)
    assert set(case.state()["rounds"][QUEUE]) == {"0 a"}


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 30), st.integers(0, 9), st.integers(0, 3)), max_size=40
    )
)
def test_no_key_is_lost_and_no_namespace_has_three_while_another_waits(
    steps: list[tuple[str, int, int, int]],
) -> None:
    """Each step queues keys of a namespace, serves some, and lets time pass."""
    case, queued, done = opened(MemoryCase()), list[str](), list[str]()
    since: dict[str, Counter[str]] = {}
    for namespace, count, some, pause_ms in steps:
        new = [f"{namespace}/{len(queued) + number:05}" for number in range(count)]
        case.worker.add(QUEUE, new)
        queued += new
        case.advance(pause_ms)
        front = set(case.state().get("stream", {}).get(QUEUE, []))
        keys = served(case, some) if some else []
        done += keys
        waiting = {key.partition("/")[0] for key in case.state().get("backlog", {}).get(QUEUE, {})}
        for key in keys:
            mine = key.partition("/")[0]
            if key not in front:
                for other in since.values():
                    other[mine] += 1
                assert max(since.get(mine, Counter()).values() or (0,)) <= 3
                since.pop(mine, None)
        since = {each: since.get(each, Counter()) for each in waiting}
    while keys := served(case):
        done += keys
    assert sorted(done) == sorted(queued)
    for namespace in "abcd":
        mine = [key for key in done if key.startswith(namespace)]
        assert mine == sorted(mine), "first come, first served"


def test_a_look_shows_who_waits(real: RedisCase) -> None:
    case = opened(real)
    look = Inspector(real.clients["metrics"], real.epoch, now_ms=real.now_ms)
    flood(case, "a", FRONT + 9)
    case.advance(700)
    case.worker.add(QUEUE, ["b/lone"])
    order = broker_state.queued(case.state(), QUEUE)
    assert order.index("b/lone") == FRONT + 1
    assert look.queue(QUEUE).queued == FRONT + 10
    assert [line.key for line in look.keys_of(QUEUE)] == order
    for key in ("a/00003", f"a/{FRONT:05}", "b/lone", f"a/{FRONT + 8:05}"):
        assert look.ahead_of(QUEUE, key, 1_000) == order.index(key)
    served(case, FRONT)
    queue = look.queue(QUEUE)
    assert (queue.queued, queue.oldest_age_ms) == (10, 700)


def test_a_claim_says_how_long_a_key_waited_in_the_backlog(real: RedisCase) -> None:
    case = opened(real)
    flood(case, "a", FRONT + 2)
    served(case, FRONT)
    case.advance(100_000_000 + 700)  # the time at which it came is kept to eight digits: nobody is told more
    case.worker.add(QUEUE, ["b/young"])
    case.advance(5)
    reply = claim_reply(case)
    assert isinstance(reply, Batch)
    assert dict(zip((each.key for each in reply.claims), reply.waited_ms, strict=True)) == {
        f"a/{FRONT:05}": 705,
        f"a/{FRONT + 1:05}": 705,
        "b/young": 5,
    }


@pytest.mark.parametrize("planted", ["backlog", "rounds", "stream"])
def test_what_is_of_a_wrong_type_ends_a_claim_before_a_key_is_lost(real: RedisCase, planted: str) -> None:
    case = opened(real)
    flood(case, "a", FRONT + 20)
    served(case, FRONT)
    name = f"{case.worker.keys.base}{QUEUE}:{planted}"  # type: ignore[attr-defined]
    kept, was = real.admin.dump(name), case.state()["backlog"][QUEUE]
    real.admin.delete(name)
    real.admin.set(name, "planted") if planted != "rounds" else real.admin.rpush(name, "planted")
    with pytest.raises(EpochOver):
        claim_reply(case)
    real.admin.delete(name)
    if kept is not None:
        real.admin.restore(name, 0, kept)
    assert case.state()["backlog"][QUEUE] == was


def test_keys_leave_the_backlog_though_memory_is_full(real: RedisCase) -> None:
    case = opened(real)
    flood(case, "a", FRONT + 20)
    served(case, FRONT)
    real.admin.config_set("maxmemory", 1)
    try:
        assert len(served(case)) == 8
        with pytest.raises(BrokerFull):
            flood(case, "b", 3)
    finally:
        real.admin.config_set("maxmemory", 0)


def test_it_is_the_time_that_orders_a_round_not_how_large_it_is(queue_case: Case) -> None:
    """Eight digits of the clock go round once in a day or so. A key near their end is served in its round too."""
    case = opened(queue_case)
    case.advance(100_000_000 - START_MS % 100_000_000 - 1)
    flood(case, "a", FRONT + 2)
    served(case, FRONT)
    case.advance(1)
    case.worker.add(QUEUE, ["b/1"])
    assert namespaces(served(case, 2)) == "ba"
    assert namespaces(served(case, 2)) == "a"
