"""Which queue of a worker is asked first: none is left behind by another whose turns are large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from oarlock.broker.values import LoadSpec
from oarlock.workers.turn.engine.queue_shares import CHILDREN, REQUESTS, QueueShares

USUAL = (1, 2, 4, 1)


def shares_of(*queues: str) -> QueueShares:
    return QueueShares(LoadSpec(queue, "things") for queue in queues)


def serve(shares: QueueShares, busy: Iterable[str]) -> str:
    """The next batch, where these queues have keys."""
    asked = shares.next_order()
    found = next(each.queue for each in asked if each.queue in busy)
    shares.served(found, asked)
    return found


def batches(
    shares: QueueShares, busy: Iterable[str], waves: dict[str, tuple[int, ...]], count: int = 120
) -> Counter[str]:
    """How many batches each queue gets. ``waves``: what a batch of a queue sends together, one after the other."""
    served: Counter[str] = Counter()
    for _ in range(count):
        queue = serve(shares, busy)
        served[queue] += 1
        for wave in waves.get(queue, USUAL):
            shares.sent(queue, wave)
    return served


@pytest.mark.parametrize(
    ("waves", "expected"),
    [
        pytest.param({}, {"a": 40, "b": 40, "c": 40}, id="batches of usual owners: in turn"),
        pytest.param({"a": (64, 123)}, {"a": 18, "b": 51, "c": 51}, id="a large DaemonSet"),
        pytest.param({"a": (64, 128, 244)}, {"a": 8, "b": 56, "c": 56}, id="a large ReplicaSet"),
        pytest.param({"a": (REQUESTS - 1,) * 9}, {"a": 40, "b": 40, "c": 40}, id="many small waves are usual"),
    ],
)
def test_what_is_large_counts_as_further_batches(waves: dict[str, tuple[int, ...]], expected: dict[str, int]) -> None:
    assert batches(shares_of("a", "b", "c"), "abc", waves) == expected


def test_one_queue_alone_has_all() -> None:
    shares = shares_of("a", "b")
    assert batches(shares, "a", {"a": (REQUESTS,)}) == {"a": 120}
    assert batches(shares, "ab", {"a": (REQUESTS,)}, 30) == {"a": 10, "b": 20}, (
        "the other has saved up no more than a batch"
    )


def test_children_that_are_read_count_too() -> None:
    shares = shares_of("a", "b")
    served: Counter[str] = Counter()
    for _ in range(60):
        queue = serve(shares, "ab")
        served[queue] += 1
        shares.begun(queue, CHILDREN if queue == "a" else CHILDREN - 1)
    assert served == {"a": 20, "b": 40}


def test_of_equals_each_is_asked_first_in_its_turn() -> None:
    shares = shares_of("a", "b", "c")
    assert [shares.next_order()[0].queue for _ in range(6)] == ["b", "c", "a"] * 2
