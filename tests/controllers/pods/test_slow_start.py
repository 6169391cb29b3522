"""Batches that double, and end with the first failure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.controllers.pods.slow_start import SlowStart


def run(total, accepted):
    """Send everything to a server that accepts so many; the sizes of the batches and the state at the end."""
    start, sizes = SlowStart(total), []
    while size := start.batch:
        fits = max(0, min(size, accepted - start.successes))
        sizes.append(size)
        start.answered(size - fits)
    return sizes, start


@pytest.mark.parametrize(
    ("total", "accepted", "sizes", "successes"),
    [
        pytest.param(10, 10, [1, 2, 4, 3], 10, id="11.2.25 ten of ten: 10 calls"),
        pytest.param(10, 5, [1, 2, 4], 5, id="11.2.25 five of ten: 7 calls"),
        pytest.param(10, 0, [1], 0, id="11.2.25 none of ten: 1 call"),
        pytest.param(100, 10, [1, 2, 4, 8], 10, id="11.2.3 ten of a hundred: 15 calls"),
        pytest.param(500, 500, [1, 2, 4, 8, 16, 32, 64, 128, 245], 500, id="a full burst: 9 batches"),
        pytest.param(1000, 1000, [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 233], 1000, id="no batch is larger than 256"),
        pytest.param(0, 0, [], 0, id="nothing to send"),
    ],
)
def test_batches(total, accepted, sizes, successes):
    """A batch is finished whole; what was not sent is skipped."""
    sent, start = run(total, accepted)
    assert sent == sizes
    assert start.successes == successes
    assert start.failures == sum(sizes) - successes
    assert start.skipped == total - sum(sizes)


def test_more_to_send():
    """What is added goes on with the pace that was reached, unless a batch has failed."""
    start = SlowStart()
    assert start.batch == 0
    start.add(3)
    sizes = []
    while size := start.batch:
        sizes.append(size)
        start.answered(0)
    start.add(9)
    while size := start.batch:
        sizes.append(size)
        start.answered(1)
    assert (sizes, start.successes, start.failures, start.skipped) == ([1, 2, 4], 6, 1, 5)
    start.add(10)
    assert (start.batch, start.skipped) == (0, 15)


@given(st.integers(0, 2000), st.integers(0, 2000))
def test_at_most_twice_as_many_calls_as_successes_and_one(total, accepted):
    """A refusal costs at most one batch, which is at most one more than all that succeeded before it."""
    sizes, start = run(total, accepted)
    assert start.successes == min(total, accepted)
    assert sum(sizes) <= 2 * start.successes + 1
    assert start.batch == 0


@pytest.mark.parametrize("failures", [-1, 2], ids=["negative", "more than were sent"])
def test_impossible_answer(failures):
    """A miscount is an error here and not a wrong batch later."""
    with pytest.raises(ValueError, match="in a batch of 1"):
        SlowStart(5).answered(failures)
