"""How many requests a turn makes: slow start, bursts, and what the rate limit grants."""

from __future__ import annotations

import pytest

from oarlock.controllers.objects.model import ReplicaSetStatus
from tests.controllers.builders import pod, pods, rs
from tests.workers.turn.turn_script import claimed, plays


@pytest.mark.parametrize(
    ("taken", "calls", "batches"),
    [
        pytest.param(0, 1, [1], id="11.2.25 none taken: one call"),
        pytest.param(10, 10, [1, 2, 4, 3], id="11.2.25 all taken: ten calls"),
        pytest.param(5, 7, [1, 2, 4], id="11.2.25 five taken: seven calls"),
    ],
)
def test_slow_start_of_ten(taken: int, calls: int, batches: list[int]) -> None:
    """The batch with the first failure is the last; each is announced before it is sent, the lowest names first."""
    lines, changes, at = [], [], 0
    for size in batches:
        names = " ".join(str(index) for index in range(at, at + size))
        answers = " ".join(f"201@{20 + index}" if index < taken else "quota" for index in range(at, at + size))
        lines += [f"reserve {size} -> all", f"announce create {names} -> recorded", f"send create {names} -> {answers}"]
        changes += [
            f"drop create {i}; need pods {20 + i}" if i < taken else f"drop create {i}; passed {i}"
            for i in range(at, at + size)
        ]
        at += size
    end = "ok: " + "; ".join(changes)
    if taken < 10:
        lines.append("send status 0, FailedCreate (exceeded quota: pods=2) @5 -> 200@90")
        end = "fails (exceeded quota: pods=2), retry: " + "; ".join([*changes, "need replicasets 90"])
    outcome = plays(claimed(rs(10)), "\n".join([*lines, end]))
    reasons = [event.reason for event in outcome.events]
    assert (len(reasons), reasons.count("SuccessfulCreate")) == (calls, min(taken, calls))
    assert at == calls


def test_too_late_ends_the_slow_start_without_a_failure() -> None:
    outcome = plays(
        claimed(rs(9)),
        """
        reserve 1           -> all
        announce create 0   -> recorded
        send create 0       -> 201@20
        reserve 2           -> all
        announce create 1 2 -> recorded
        send create 1 2     -> 201@21 late
        retry: drop create 0; need pods 20; drop create 1; need pods 21; drop create 2
        """,
    )
    assert [event.reason for event in outcome.events] == ["SuccessfulCreate"] * 2


def test_of_several_failures_the_first_is_told() -> None:
    outcome = plays(
        claimed(rs(3)),
        """
        reserve 1           -> all
        announce create 0   -> recorded
        send create 0       -> 201@20
        reserve 2           -> all
        announce create 1 2 -> recorded
        send create 1 2     -> 422 quota
        send status 0, FailedCreate (Invalid) @5 -> 200@30
        fails (Invalid), retry: drop create 0; need pods 20; drop create 1; passed 1; drop create 2; passed 2; """
        "need replicasets 30\n"
        """
        """,
    )
    assert [event.reason for event in outcome.events] == ["SuccessfulCreate", "FailedCreate", "FailedCreate"]


def test_a_terminating_namespace_ends_the_slow_start_and_is_no_failure() -> None:
    plays(
        claimed(rs(2)),
        """
        reserve 1         -> all
        announce create 0 -> recorded
        send create 0     -> terminating
        ok: drop create 0
        """,
    )


@pytest.mark.parametrize(
    ("grant", "then"),
    [
        pytest.param("0 wait 90", "ok in 90 ms: drop create 0; need pods 20", id="none: nothing is recorded"),
        pytest.param(
            "1 wait 50",
            """announce create 1 -> recorded
            send create 1        -> 201@21
            ok in 50 ms: drop create 0; need pods 20; drop create 1; need pods 21""",
            id="one of two: only that one is recorded",
        ),
    ],
)
def test_creates_as_the_rate_limit_grants(grant: str, then: str) -> None:
    """Others may have the worker meanwhile: the turn ends well, and the key comes again."""
    plays(
        claimed(rs(3)),
        f"""
        reserve 1         -> all
        announce create 0 -> recorded
        send create 0     -> 201@20
        reserve 2         -> {grant}
        {then}
        """,
    )


def test_a_failure_beside_a_short_grant() -> None:
    plays(
        claimed(rs(3)),
        """
        reserve 1         -> all
        announce create 0 -> recorded
        send create 0     -> 201@20
        reserve 2         -> 1 wait 50
        announce create 1 -> recorded
        send create 1     -> quota
        send status 0, FailedCreate (exceeded quota: pods=2) @5 -> 200@30
        fails (exceeded quota: pods=2), retry: drop create 0; need pods 20; drop create 1; passed 1; need replicasets 30
        """,
    )


@pytest.mark.parametrize(
    ("grant", "then"),
    [
        pytest.param("0 wait 90", "ok in 90 ms", id="none: nothing is recorded"),
        pytest.param(
            "2 wait 50",
            """announce delete 0@7 1@7 -> recorded
            send delete 0@7 1@7        -> 200@20 200@21
            ok in 50 ms: answered 0@7; answered 1@7""",
            id="two of three: only those are recorded",
        ),
    ],
)
def test_deletes_as_the_rate_limit_grants(grant: str, then: str) -> None:
    plays(
        claimed(rs(0, status=ReplicaSetStatus(3, 3, 3, 3, None, 1)), pods("RRR")),
        f"""
        reserve 3 -> {grant}
        {then}
        """,
    )


@pytest.mark.parametrize(
    ("replicas", "grant", "sent", "ratios"),
    [
        pytest.param(1, "all", 3, [1, 1], id="all that go; one that is not ready has none"),
        pytest.param(1, "2 wait 50", 2, [1], id="of those that go now: the others are ranked again"),
        pytest.param(1, "0 wait 50", 0, [], id="none goes"),
        pytest.param(0, "all", 4, [], id="all go: nothing was ranked"),
    ],
)
def test_ages_of_the_pods_that_go(replicas: int, grant: str, sent: int, ratios: list[int]) -> None:
    """For the metric: each pod that is deleted is counted when it is."""
    given = [pod(f"p{n}", uid=f"uid-p{n}") for n in range(3)]
    given.append(pod("young", ready=False, ready_since_ms=0))
    doomed = ["young", "p0", "p1"] if replicas else [each.name for each in given]
    names = [f"{name}@7" for name in doomed[:sent]]
    lines = [f"reserve {len(doomed)} -> {grant}"]
    if sent:
        answers = " ".join(f"200@{20 + n}" for n in range(sent))
        lines += [f"announce delete {' '.join(names)} -> recorded", f"send delete {' '.join(names)} -> {answers}"]
    end = "; ".join(f"answered {name}" for name in names)
    lines.append(("ok" if sent == len(doomed) else "ok in 50 ms") + (f": {end}" if end else ""))
    owner = rs(replicas, status=ReplicaSetStatus(4, 4, 3, 3, None, 1))
    assert plays(claimed(owner, tuple(given)), "\n".join(lines)).age_ratios == ratios
