"""What upstream did against what was decided: each reason, and what has none."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.workers.turn.shadow.acts import between
from oarlock.workers.turn.shadow.judge import (
    AGE,
    AVAILABLE,
    COST,
    EQUAL,
    LATE,
    OUTSIDE,
    SAME,
    TIME,
    UNEXPLAINED,
    UNOBSERVED,
    Earlier,
    Moment,
    findings,
)
from oarlock.workers.turn.shadow.seen import Child, Seen
from oarlock.workers.turn.shadow.wanted import REPLICASETS, Wanted

NOW_MS = 10_000_000
READY = (True, "Running", 2)


def pod(name: str, state: str = "active", digest: str = "a", **fields: Any) -> Child:
    """One that is ready on a node, for a long time."""
    old = {"node": "n1", "like": READY, "created_ms": 1_000, "ready_ms": 2_000}
    return Child(name, state, digest, **{**old, **fields})


def replicaset(name: str, size: int, digest: str = "a", *, settled: bool = True) -> Child:
    return Child(name, "active", digest, size=size, settled=settled)


def saw(*children: Child, resource: str = "pods", **fields: Any) -> Seen:
    return Seen("owner", resource, fields.pop("spec", "s"), {each.name: each for each in children}, **fields)


def reasons(
    before: Seen,
    after: Seen,
    wanted: Wanted,
    earlier: Wanted | None = None,
    *,
    now: Wanted | None = None,
    is_time: bool = False,
    version: tuple[int, int] = (1, 30),
) -> list[str]:
    known = Earlier().and_also(earlier) if earlier else Earlier()
    acts = between(before, after)
    known = known.and_also(wanted)
    return [
        each.reason
        for each in findings(Moment(before, after, wanted, now or Wanted(), known, acts, is_time, NOW_MS, version))
    ]


A, B, C = pod("a"), pod("b"), pod("c")
GOES = Wanted(deletes=frozenset({"a"}))


@pytest.mark.parametrize(
    ("before", "after", "wanted", "told"),
    [
        (saw(), saw(A, B), Wanted(creates={"": 2}), [SAME]),
        (saw(), saw(A), Wanted(creates={"": 2}), [SAME]),
        (saw(), saw(A, B, C), Wanted(creates={"": 2}), [UNEXPLAINED]),
        (saw(), saw(A), Wanted(), [UNEXPLAINED]),
        (saw(), saw(A, spec="other"), Wanted(), [OUTSIDE]),
        (saw(A), saw(B), Wanted(), [OUTSIDE]),
        (saw(A), saw(pod("a", "finished"), B), Wanted(), [OUTSIDE]),
        (saw(A), saw(pod("a", "finished"), B, C), Wanted(), [UNEXPLAINED]),
        (saw(A), saw(pod("a", digest="b"), B), Wanted(), [UNEXPLAINED]),
        (saw(nodes="1"), saw(A, nodes="1"), Wanted(creates={"n1": 1}), [SAME]),
        (saw(nodes="1"), saw(A, nodes="1"), Wanted(creates={"n2": 1}), [UNEXPLAINED]),
        (saw(nodes="1"), saw(A, nodes="2"), Wanted(), [OUTSIDE]),
        (saw(pod("b", "ending"), nodes="1"), saw(A, nodes="1"), Wanted(), [OUTSIDE]),
        (saw(B, nodes="1"), saw(A, B, nodes="1"), Wanted(creates={"n2": 1}), [EQUAL]),
        (saw(orphans={"a": ""}), saw(A), Wanted(touches=frozenset({"a"})), [SAME]),
        (saw(orphans={"a": ""}), saw(A), Wanted(), [UNEXPLAINED]),
        (saw(orphans={"a": "others"}), saw(A), Wanted(), [OUTSIDE]),
    ],
)
def test_creates_and_adoptions(before: Seen, after: Seen, wanted: Wanted, told: list[str]) -> None:
    assert [each for each in reasons(before, after, wanted) if each != "-"] == told


@pytest.mark.parametrize(
    ("spared", "taken", "fields", "version", "told"),
    [
        (A, A, {}, (1, 30), SAME),
        (A, pod("b"), {}, (1, 30), EQUAL),
        (A, pod("b", created_ms=NOW_MS - 5_000), {}, (1, 30), UNEXPLAINED),
        (A, pod("b", created_ms=NOW_MS - 5_000), {}, (1, 20), AGE),
        (A, pod("b", cost=3), {}, (1, 30), UNEXPLAINED),
        (A, pod("b", cost=3), {}, (1, 20), COST),
        (A, pod("b", restarts=3), {}, (1, 30), UNEXPLAINED),
        (A, pod("b", like=(False, "Pending", 0)), {}, (1, 20), UNEXPLAINED),
        (pod("a", like=(True, "Running", 1)), pod("b"), {"ready_seconds": 9}, (1, 30), AVAILABLE),
        (pod("a", like=(True, "Running", 1)), pod("b"), {}, (1, 30), UNEXPLAINED),
        (A, pod("b", restarts=3), {"nodes": "1"}, (1, 30), EQUAL),
        (A, pod("b", like=(True, "Running", 0)), {"nodes": "1"}, (1, 30), UNEXPLAINED),
    ],
)
def test_the_choice_of_pods_to_delete(
    spared: Child, taken: Child, fields: dict[str, Any], version: tuple[int, int], told: str
) -> None:
    stay = [each for each in (spared,) if each is not taken]
    assert reasons(saw(spared, taken, **fields), saw(*stay, **fields), GOES, version=version) == [told]


AGAIN = Wanted(creates={"": 1})
OLD, NEW = pod("old", revision="1"), pod("new", revision="2")
ELSEWHERE = pod("b", node="n2")


@pytest.mark.parametrize(
    ("before", "after", "now", "told"),
    [
        (saw(A, B), saw(A), AGAIN, []),
        (saw(A, B), saw(A), Wanted(), [UNEXPLAINED]),
        (saw(A, B), saw(A, spec="t"), Wanted(), [OUTSIDE]),
        (saw(A, pod("b", "finished")), saw(A), Wanted(), []),
        (saw(A, B), saw(A, orphans={"b": ""}), Wanted(), []),
        (saw(OLD, nodes="1"), saw(nodes="1"), Wanted(creates={"n1": 1}, revision="1"), []),
        (saw(OLD, nodes="1"), saw(nodes="1"), Wanted(creates={"n1": 1}, revision="2"), [UNEXPLAINED]),
        (
            saw(OLD, nodes="1", on_delete=True),
            saw(nodes="1", on_delete=True),
            Wanted(creates={"n1": 1}, revision="2"),
            [],
        ),
        (
            saw(OLD, ELSEWHERE, nodes="1"),
            saw(pod("b", node="n2", digest="b"), nodes="1"),
            Wanted(creates={"n1": 1}, revision="2"),
            [OUTSIDE],
        ),
        (saw(A, resource=REPLICASETS), saw(resource=REPLICASETS), Wanted(), []),
    ],
)
def test_what_nobody_decided_to_delete(before: Seen, after: Seen, now: Wanted, told: list[str]) -> None:
    """Others have deleted it, if it is wanted again as it was."""
    assert reasons(before, after, Wanted(), now=now) == told


def test_more_than_were_to_go_others_have_deleted() -> None:
    assert reasons(saw(A, B, C), saw(B), GOES) == [SAME]


def test_upstream_may_act_on_what_it_saw_before() -> None:
    earlier = Wanted(creates={"": 2}, deletes=frozenset({"b"}))
    assert reasons(saw(), saw(A), Wanted(), earlier) == [LATE]
    assert reasons(saw(A, pod("b", restarts=3)), saw(A), GOES, earlier) == [LATE]


ONE, TWO = replicaset("one", 3), replicaset("two", 0)
SHRINK = Wanted(sizes={"one": 2})


@pytest.mark.parametrize(
    ("before", "after", "wanted", "is_time", "told"),
    [
        ((ONE, TWO), (replicaset("one", 2), TWO), SHRINK, False, SAME),
        ((ONE, TWO), (replicaset("one", 1), TWO), SHRINK, False, UNEXPLAINED),
        ((ONE, TWO), (replicaset("one", 1), TWO), SHRINK, True, TIME),
        ((ONE, TWO), (replicaset("one", 1), replicaset("two", 0, "b")), SHRINK, False, OUTSIDE),
        ((ONE, TWO), (replicaset("one", 2), replicaset("two", 1)), SHRINK, False, UNOBSERVED),
        (
            (replicaset("one", 3, settled=False), TWO),
            (replicaset("one", 3, settled=False), replicaset("two", 1)),
            Wanted(),
            False,
            UNOBSERVED,
        ),
        ((), (ONE,), Wanted(creates={REPLICASETS: 1}, new_size=3), False, SAME),
        ((), (ONE,), Wanted(creates={REPLICASETS: 1}, new_size=2), False, UNEXPLAINED),
        ((), (ONE,), Wanted(), False, UNEXPLAINED),
    ],
)
def test_sizes(before: tuple[Child, ...], after: tuple[Child, ...], wanted: Wanted, is_time: bool, told: str) -> None:
    was, now = saw(*before, resource=REPLICASETS), saw(*after, resource=REPLICASETS)
    assert reasons(was, now, wanted, is_time=is_time) == [told]


def test_pods_that_a_deployment_waits_for_are_no_children_of_it() -> None:
    """Under Recreate it creates when the last pod has gone, which no ReplicaSet shows."""
    was = saw(resource=REPLICASETS, beyond="two pods")
    assert reasons(was, saw(ONE, resource=REPLICASETS), Wanted()) == [OUTSIDE]
