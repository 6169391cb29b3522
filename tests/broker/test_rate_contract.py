"""The rate of a queue: how many keys all claims together take of it in a second."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.broker.keys import base
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.values.claims import Batch, Idle, LoadSpec
from oarlock.broker.values.errors import EpochOver
from tests.broker.broker_cases import QUEUE, SPECS, Case, MemoryCase, RedisCase, claim_reply, finish, opened
from tests.broker.broker_state import queued

FREE = LoadSpec("daemonset", "replicasets")


def rated(rate_per_s: float) -> LoadSpec:
    return SPECS[0]._replace(rate_per_s=rate_per_s)


def full(case: Case, keys: int = 40, **options: tuple[str, ...]) -> Case:
    """A queue with keys."""
    for holder in options.get("holders", ("w1",)):
        case.worker.register(holder, "supervisor", [QUEUE, FREE.queue])
    opened(case, holders=())
    case.worker.add(QUEUE, [f"ns/{i:03}" for i in range(keys)])
    return case


def taken(case: Case, *specs: LoadSpec, holder: str = "w1", keys_max: int = 8) -> list[str] | Idle:
    reply = claim_reply(case, holder, specs=specs, keys_max=keys_max)
    return [each.key for each in reply.claims] if isinstance(reply, Batch) else reply


def count(case: Case, rate_per_s: float, keys_max: int = 8) -> int:
    found = taken(case, rated(rate_per_s), keys_max=keys_max)
    return 0 if isinstance(found, Idle) else len(found)


def test_a_second_s_worth_may_go_at_once_and_then_the_rate_holds(queue_case: Case) -> None:
    case = full(queue_case)
    assert [count(case, 10), count(case, 10)] == [8, 2]
    assert taken(case, rated(10)) is Idle.LIMITED
    case.advance(99)
    assert taken(case, rated(10)) is Idle.LIMITED
    case.advance(1)
    assert taken(case, rated(10)) == ["ns/010"]
    case.advance(250)
    assert taken(case, rated(10)) == ["ns/011", "ns/012"]
    case.advance(3_600_000)
    assert [count(case, 10), count(case, 10), count(case, 10)] == [8, 2, 0]


def test_a_rate_below_one_lets_one_go_in_its_time(queue_case: Case) -> None:
    case = full(queue_case)
    assert [count(case, 0.1), count(case, 0.1)] == [1, 0]
    case.advance(9_999)
    assert count(case, 0.1) == 0
    case.advance(1)
    assert [count(case, 0.1), count(case, 0.1)] == [1, 0]


def test_all_workers_share_it(queue_case: Case) -> None:
    case = full(queue_case, holders=("w1", "w2"))
    assert taken(case, rated(3), holder="w1", keys_max=2) == ["ns/000", "ns/001"]
    assert taken(case, rated(3), holder="w2") == ["ns/002"]
    assert taken(case, rated(3), holder="w1") is Idle.LIMITED


def test_other_queues_go_on(queue_case: Case) -> None:
    case = full(queue_case)
    case.worker.add("daemonset", ["ns/free"])
    assert count(case, 5) == 5
    assert taken(case, rated(5), FREE) == ["ns/free"]
    assert taken(case, rated(5), FREE) is Idle.LIMITED


def test_an_empty_queue_is_empty_whatever_its_rate(queue_case: Case) -> None:
    case = full(queue_case, keys=1)
    assert count(case, 1) == 1
    assert taken(case, rated(1)) is Idle.EMPTY


def test_a_key_that_was_not_let_go_keeps_its_place(queue_case: Case) -> None:
    case = full(queue_case, keys=3)
    assert taken(case, rated(1)) == ["ns/000"]
    assert taken(case, rated(1)) is Idle.LIMITED
    assert case.state()["stream"] == {QUEUE: ["ns/001", "ns/002"]}
    case.advance(1_000)
    assert taken(case, rated(1)) == ["ns/001"]


def test_who_waits_for_the_rate_is_woken_for_other_queues(queue_case: Case) -> None:
    case = full(queue_case)
    assert count(case, 5) == 5
    assert taken(case, rated(5), FREE) is Idle.LIMITED
    case.worker.add("daemonset", ["ns/free"])
    assert case.worker.wait([QUEUE, "daemonset"]) == "daemonset"


def test_a_key_that_runs_again_counts_again(queue_case: Case) -> None:
    case = full(queue_case, keys=1)
    reply = claim_reply(case, specs=(rated(1),))
    assert isinstance(reply, Batch)
    case.worker.add(QUEUE, ["ns/000"])
    finish(case, reply.claims[0])
    assert taken(case, rated(1)) is Idle.LIMITED


def test_a_clock_that_goes_back_starves_nobody(queue_case: Case) -> None:
    case = full(queue_case)
    assert count(case, 5) == 5
    case.jump(-3_600_000)
    assert taken(case, rated(5)) is Idle.LIMITED
    case.jump(200)
    assert count(case, 5) == 1


def test_without_a_rate_nothing_is_counted(queue_case: Case) -> None:
    case = full(queue_case)
    assert len(taken(case, SPECS[0], keys_max=30)) == 30  # type: ignore[arg-type]
    assert "rate" not in case.state()


@pytest.mark.parametrize("text", ["0", "-1", "nan", "fast"])
def test_a_rate_that_is_none_takes_nothing(real: RedisCase, text: str) -> None:
    case = full(real)
    words = f"{QUEUE} replicasets rate={text} pods/owner/uid"
    with pytest.raises(Exception, match="bad rate"):
        case.worker._run("claim", "w1", "n", 5_000, 14_000, 8, 9_999, "", 0, words)  # type: ignore[attr-defined]
    assert len(queued(case.state(), QUEUE)) == 40


def test_a_bucket_of_a_wrong_type_ends_the_claim_before_its_first_write(real: RedisCase) -> None:
    case = full(real)
    real.admin.set(f"{base(case.epoch)}{QUEUE}:rate", "planted")
    with pytest.raises(EpochOver):
        claim_reply(case, specs=(rated(5),))
    real.admin.delete(f"{base(case.epoch)}{QUEUE}:rate")
    after = case.state()
    assert (len(queued(after, QUEUE)), "locks" in after, "leases" in after) == (40, False, False)


@settings(max_examples=150, deadline=None)
@given(
    rate_per_s=st.one_of(st.integers(1, 50), st.floats(0.05, 50)),
    calls=st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 20)), min_size=1, max_size=25),
)
def test_no_stretch_of_time_brings_more_than_the_rate_and_a_burst(
    rate_per_s: float, calls: list[tuple[int, int]]
) -> None:
    case = full(MemoryCase(), keys=600)
    took: list[tuple[int, int]] = []
    for pause_ms, keys_max in calls:
        case.advance(pause_ms)
        took.append((case.now_ms(), count(case, rate_per_s, keys_max)))
    burst = max(1.0, rate_per_s)
    for first, last in combinations(range(len(took)), 2):
        span_s = (took[last][0] - took[first][0]) / 1_000
        assert sum(each for _, each in took[first : last + 1]) <= burst + rate_per_s * span_s + 0.01
    case.advance(int(1_000 / rate_per_s) + 2)
    assert count(case, rate_per_s) >= 1


@pytest.mark.real
@pytest.mark.parametrize("rate", [0.1, 1, 5, 40])
def test_what_a_look_says_a_key_waits_is_what_it_waits(real: RedisCase, rate: float) -> None:
    look = Inspector(real.clients["metrics"], real.epoch, now_ms=real.now_ms)
    full(real, keys=60)
    assert look.rate_wait_ms(QUEUE, rate, 0) == 0
    while count(real, rate):
        pass
    told, waited = look.rate_wait_ms(QUEUE, rate, 2), 0
    for _ in range(3):  # two keys are ahead of the third
        step_ms = look.rate_wait_ms(QUEUE, rate, 0)
        real.jump(step_ms - 1)
        assert count(real, rate) == 0
        real.jump(1)
        assert count(real, rate) == 1
        waited += step_ms
    assert told == waited
