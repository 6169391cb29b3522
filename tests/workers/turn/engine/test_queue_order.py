"""In which order a worker asks its queues: none is left behind by another whose turns are large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

from oarlock.broker.values.claims import LoadSpec
from oarlock.workers.turn.engine.queue_order import CHILDREN, OWED_MAX, REQUESTS, QueueOrder

USUAL = (1, 2, 4, 1)


def order_of(*queues: str) -> QueueOrder:
    return QueueOrder(LoadSpec(queue, "things") for queue in queues)


def serve(order: QueueOrder, busy: Iterable[str]) -> str:
    """The next batch, where these queues have keys."""
    found = next(each.queue for each in order.following() if each.queue in busy)
    order.served(found)
    return found


def batches(order: QueueOrder, busy: str, waves: Mapping[str, tuple[int, ...]], count: int = 120) -> tuple[int, ...]:
    """How many batches each busy queue gets. ``waves``: what a batch of a queue sends together, one after the other."""
    served: Counter[str] = Counter()
    for _ in range(count):
        queue = serve(order, busy)
        served[queue] += 1
        for wave in waves.get(queue, USUAL):
            order.sent(queue, wave)
    return tuple(served[queue] for queue in busy)


@pytest.mark.parametrize(
    ("waves", "expected"),
    [
        pytest.param({}, (40, 40, 40), id="batches of usual owners: in turn"),
        pytest.param({"a": (64, 123)}, (18, 51, 51), id="a large DaemonSet"),
        pytest.param({"a": (64, 128, 244)}, (8, 56, 56), id="a large ReplicaSet"),
        pytest.param({"a": (64, 128, 244) * 64}, (7, 57, 56), id="many of them at once: there is an end to it"),
        pytest.param({"a": (REQUESTS - 1,) * 9}, (40, 40, 40), id="many small waves are usual"),
        pytest.param({"a": (64, 123), "b": (64, 123)}, (24, 24, 72), id="two of that kind"),
    ],
)
def test_what_is_large_counts_as_further_batches(waves: dict[str, tuple[int, ...]], expected: tuple[int, ...]) -> None:
    assert batches(order_of("a", "b", "c"), "abc", waves) == expected
    assert batches(order_of("x", "a", "y", "z", "b", "c", "w"), "abc", waves) == expected, "wherever idle ones stand"


def test_beside_one_other_it_has_its_share() -> None:
    assert batches(order_of("a", "b"), "ab", {"a": (64, 123)}) == (30, 90)


def test_a_queue_alone_has_all_and_saves_up_nothing_for_the_others() -> None:
    order = order_of("a", "b")
    assert {serve(order, "a") for _ in range(1_000)} == {"a"}
    assert batches(order, "ab", {}) == (60, 60)


def test_what_one_alone_owes_is_bounded() -> None:
    order = order_of("a", "b")
    for _ in range(1_000):
        order.sent(serve(order, "a"), 10 * REQUESTS)
    served = [serve(order, "ab") for _ in range(OWED_MAX + 3)]
    assert served.index("a") in (OWED_MAX + 1, OWED_MAX + 2)


def test_children_that_are_read_count_too() -> None:
    order = order_of("a", "b")
    served: Counter[str] = Counter()
    for _ in range(120):
        queue = serve(order, "ab")
        served[queue] += 1
        order.begun(queue, CHILDREN if queue == "a" else CHILDREN - 1)
    assert served == {"a": 40, "b": 80}


def test_after_one_that_had_a_batch_the_next_one_is_asked_first_and_one_that_owes_last() -> None:
    order = order_of("a", "b", "c")

    def asked() -> str:
        return "".join(each.queue for each in order.following())

    assert [asked(), asked()] == ["abc", "abc"], "to ask in vain changes nothing"
    order.served("b")
    assert asked() == "cab"
    order.sent("c", REQUESTS)
    assert (asked(), order.owes("c"), order.owes("a")) == ("abc", True, False)
