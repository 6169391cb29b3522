"""The token bucket, on a clock of its own."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.cluster.http.throttle import BURST_DEFAULT, QPS_DEFAULT, TokenBucket, Unlimited, limiter
from tests.cluster.client_helpers import FakeTime, looped


def test_the_defaults_are_upstreams():
    assert (QPS_DEFAULT, BURST_DEFAULT) == (20.0, 30)
    assert isinstance(limiter(), TokenBucket)
    assert isinstance(limiter(None), Unlimited)


def test_the_burst_is_there_at_once_then_the_rate():
    time = FakeTime()
    bucket = TokenBucket(20, 30, time)
    assert bucket.try_take(500) == 30
    assert bucket.try_take(1) == 0
    assert bucket.wait_s(1) == pytest.approx(0.05)
    time.now_s += 0.5
    assert bucket.try_take(500) == 10
    time.now_s += 3600
    assert bucket.try_take(500) == 30, "no more than the burst is saved up"


def test_waiting_as_told_is_enough():
    """Sums of fractions must not leave the last token a hair short."""
    for qps in (3, 7, 20, 33):
        time = FakeTime(12345.678)
        bucket = TokenBucket(qps, 5, time)
        bucket.try_take(5)
        for _ in range(200):
            time.now_s += bucket.wait_s(1)
            assert bucket.try_take(1) == 1, qps


def test_tokens_not_used_go_back():
    bucket = TokenBucket(1, 10, FakeTime())
    assert bucket.try_take(8) == 8
    bucket.give_back(5)
    assert bucket.try_take(10) == 7
    bucket.give_back(99)
    assert bucket.try_take(99) == 10


def test_a_clock_that_goes_back_gives_nothing_and_takes_nothing():
    time = FakeTime()
    bucket = TokenBucket(10, 10, time)
    bucket.try_take(10)
    time.now_s -= 100
    assert bucket.try_take(1) == 0
    time.now_s += 1
    assert bucket.try_take(99) == 10


@pytest.mark.parametrize(
    ("qps", "burst", "wanted", "portion"),
    [
        (20, 30, 1, 1),
        (20, 30, 4, 4),  # nobody waits for more than he wants
        (20, 30, 500, 7),
        (100, 200, 500, 7),
        (7, 30, 500, 3),  # of half a second
        (1, 30, 500, 1),
        (20, 5, 500, 5),  # more are never there
    ],
)
def test_scarce_tokens_are_given_in_portions(qps, burst, wanted, portion):
    time = FakeTime()
    bucket = TokenBucket(qps, burst, time)
    bucket.try_take(burst)
    for _ in range(20):
        assert bucket.wait_s(wanted) == pytest.approx(portion / qps)
        if portion > 1:
            time.now_s += (portion - 1) / qps
            assert bucket.try_take(wanted) == 0
        time.now_s += bucket.wait_s(wanted)
        assert bucket.try_take(wanted) == portion


def test_who_will_want_more_waits_for_a_portion():
    time = FakeTime()
    bucket = TokenBucket(20, 30, time)
    bucket.try_take(24)
    assert bucket.try_take(1, wanted=100) == 0
    assert bucket.wait_s(100) == pytest.approx(0.05)
    time.now_s += 0.05
    assert [bucket.try_take(1, wanted=100), bucket.try_take(2), bucket.try_take(4)] == [1, 2, 4], "the waves of a turn"
    assert bucket.try_take(8) == 0
    assert bucket.wait_s(8) == pytest.approx(0.35)


def test_who_asks_for_many_is_not_starved_by_those_who_take_each_token():
    time = FakeTime()
    bucket = TokenBucket(20, 30, time)
    bucket.try_take(30)
    got = []
    for _ in range(60):  # three seconds
        time.now_s += 0.05
        got.append(bucket.try_take(500))
        bucket.try_take(1)
    assert sum(got) >= 5


def test_who_finds_none_after_so_long_gets_the_next_there_is():
    time = FakeTime()
    bucket = TokenBucket(20, 30, time)
    bucket.try_take(30)
    for _ in range(14):
        time.now_s += 0.05
        assert (bucket.try_take(1), bucket.try_take(1, wanted=500)) == (1, 0)
    time.now_s += 0.05
    assert bucket.try_take(1, wanted=500) == 1


@looped
async def test_waiting_in_order_of_arrival():
    time = FakeTime()
    bucket = TokenBucket(10, 2, time, time.sleep)
    begun_s = time.now_s
    for _ in range(12):
        await bucket.take()
    assert time.now_s - begun_s == pytest.approx(1.0)


@looped
async def test_those_who_wait_come_before_those_who_ask():
    """A promised token is not given to try_take, and a cancelled wait returns it."""
    time = FakeTime()
    never = asyncio.Event()

    async def sleep(_: float) -> None:
        await never.wait()

    bucket = TokenBucket(10, 1, time, sleep)
    await bucket.take()
    waiting = asyncio.create_task(bucket.take())
    await asyncio.sleep(0)
    time.now_s += 0.1
    assert bucket.try_take(1) == 0
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert bucket.try_take(1) == 1


@settings(deadline=None)
@given(
    st.integers(1, 100),
    st.integers(1, 50),
    st.lists(st.tuples(st.floats(0, 5), st.integers(0, 60)), max_size=40),
)
def test_never_more_than_burst_plus_rate(qps, burst, steps):
    time = FakeTime(0.0)
    bucket = TokenBucket(qps, burst, time)
    taken = 0
    for passed_s, wanted in steps:
        time.now_s += passed_s
        got = bucket.try_take(wanted)
        assert 0 <= got <= wanted
        if wanted:
            assert got or bucket.wait_s(wanted) > 0, "who is told to wait for nothing would ask for ever"
        taken += got
        assert taken <= burst + qps * time.now_s + 1e-6


@looped
async def test_no_limit():
    unlimited = Unlimited()
    await unlimited.take()
    unlimited.give_back(3)
    assert (unlimited.try_take(10_000), unlimited.wait_s(10_000)) == (10_000, 0.0)


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_senseless_limits_are_refused(qps, burst):
    with pytest.raises(ValueError):
        TokenBucket(qps, burst)
