"""How many requests a turn makes: slow start, bursts, and what the rate limit grants."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from oarlock.controllers.objects.model import ReplicaSetStatus
from oarlock.workers.turn.status import LateStatus, StatusWriter
from oarlock.workers.turn.steps import Announce, Grant, Reserve, Send, TurnFailed
from oarlock.workers.turn.turn import TurnContext, View, turn
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.controllers.builders import NOW_MS, pod, pods, rs
from tests.workers.turn.turn_answers import written
from tests.workers.turn.turn_script import CONTROLLER, claimed, plays, slot


@pytest.mark.parametrize(
    ("taken", "calls", "batches"),
    [
        pytest.param(0, 1, [1], id="11.2.25 none taken: one call"),
        pytest.param(10, 10, [1, 2, 4, 3], id="11.2.25 all taken: ten calls"),
        pytest.param(5, 7, [1, 2, 4], id="11.2.25 five taken: seven calls"),
    ],
)
def test_slow_start_of_ten(taken: int, calls: int, batches: list[int]) -> None:
    """The wave with the first failure is the last. All are announced before the first; those that are never sent then
    are expected no longer. The lowest names come first.
    """
    lines, changes, at = [], [], 0
    for size in batches:
        names = " ".join(str(index) for index in range(at, at + size))
        answers = " ".join(f"201@{20 + index}" if index < taken else "quota" for index in range(at, at + size))
        lines += [f"reserve {size} -> all", f"send create {names} -> {answers}"]
        changes += [
            f"drop create {i}; need pods {20 + i}" if i < taken else f"drop create {i}; passed {i}"
            for i in range(at, at + size)
        ]
        at += size
    lines.insert(1, "announce create 0 1 2 3 4 5 6 7 8 9 -> recorded")
    changes += [f"drop create {i}" for i in range(at, 10)]
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
        reserve 1                         -> all
        announce create 0 1 2 3 4 5 6 7 8 -> recorded
        send create 0                     -> 201@20
        reserve 2                         -> all
        send create 1 2                   -> 201@21 late
        retry: drop create 0; need pods 20; drop create 1; need pods 21; drop create 2; \
drop create 3; drop create 4; drop create 5; drop create 6; drop create 7; drop create 8
        """,
    )
    assert [event.reason for event in outcome.events] == ["SuccessfulCreate"] * 2


def test_of_several_failures_the_first_is_told() -> None:
    outcome = plays(
        claimed(rs(3)),
        """
        reserve 1             -> all
        announce create 0 1 2 -> recorded
        send create 0         -> 201@20
        reserve 2             -> all
        send create 1 2       -> 422 quota
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
        reserve 1           -> all
        announce create 0 1 -> recorded
        send create 0       -> terminating
        ok: drop create 0; drop create 1
        """,
    )


@pytest.mark.parametrize(
    ("grant", "then"),
    [
        pytest.param(
            "0 wait 90",
            "ok in 90 ms: drop create 0; need pods 20; drop create 1; drop create 2",
            id="none: they are expected no longer",
        ),
        pytest.param(
            "1 wait 50",
            """send create 1 -> 201@21
            ok in 50 ms: drop create 0; need pods 20; drop create 1; need pods 21; drop create 2""",
            id="one of two: the other is expected no longer",
        ),
    ],
)
def test_creates_as_the_rate_limit_grants(grant: str, then: str) -> None:
    """Others may have the worker meanwhile: the turn ends well, and the key comes again."""
    plays(
        claimed(rs(3)),
        f"""
        reserve 1             -> all
        announce create 0 1 2 -> recorded
        send create 0         -> 201@20
        reserve 2             -> {grant}
        {then}
        """,
    )


def test_a_failure_beside_a_short_grant() -> None:
    plays(
        claimed(rs(3)),
        """
        reserve 1             -> all
        announce create 0 1 2 -> recorded
        send create 0         -> 201@20
        reserve 2             -> 1 wait 50
        send create 1         -> quota
        send status 0, FailedCreate (exceeded quota: pods=2) @5 -> 200@30
        fails (exceeded quota: pods=2), retry: drop create 0; need pods 20; drop create 1; passed 1; \
drop create 2; need replicasets 30
        """,
    )


def test_none_is_announced_if_the_rate_limit_grants_none() -> None:
    plays(claimed(rs(3)), "reserve 1 -> 0 wait 90\nok in 90 ms")


def announced(owner_replicas: int, *record: str, fails: int = -1) -> list[str]:
    """The announcements and waves of a turn, by slot, and the names that it drops without an answer. ``fails``: the
    create that a quota refuses.
    """
    claim = claimed(rs(owner_replicas), (), *record)
    outcome = TurnOutcome(claim)
    status = StatusWriter(False, lambda: NOW_MS, LateStatus())
    running = turn(claim, View("10", 0), CONTROLLER, TurnContext(120_000, lambda: NOW_MS, status), outcome)
    said, sent, result = [], set[str](), None
    try:
        while True:
            match running.send(result):
                case Reserve(wanted):
                    result = Grant(wanted, 0)
                case Announce(_, entries):
                    said.append(f"announce {_span(entry.target.partition('/')[2] for entry in entries)}")
                    result = []
                case Send(writes) if writes[0].verb == "create":
                    said.append(f"send {_span(write.name for write in writes)}")
                    sent |= {f"create {write.target}" for write in writes}
                    result = [written("quota" if slot(each.name) == str(fails) else "201@20") for each in writes]
                case Send(writes):
                    result = [written("200@30") for _ in writes]
    except (StopIteration, TurnFailed) as end:
        finish = end.value if isinstance(end, StopIteration) else end.finish
    unsent = [each.name for each in finish.changes if each.op == "drop" and each.name not in sent]
    return [*said, f"drop {_span(field.partition('/')[2] for field in unsent)}"] if unsent else said


def _span(names: Iterable[str]) -> str:
    """ "0-30" of names by slot, each one after the other; else all of them."""
    slots = [slot(name) for name in names]
    whole = [str(at) for at in range(int(slots[0]), int(slots[0]) + len(slots))]
    return f"{slots[0]}-{slots[-1]}" if slots == whole and len(slots) > 1 else " ".join(slots)


def test_once_small_waves_have_gone_through_all_others_are_announced() -> None:
    """31 names are 1, 2, 4, 8 and 16."""
    assert announced(100) == [
        *("announce 0-30", "send 0", "send 1-2", "send 3-6", "send 7-14", "send 15-30"),
        *("announce 31-99", "send 31-62", "send 63-99"),
    ]


def test_a_first_create_that_fails_has_named_few_in_vain() -> None:
    assert announced(70, fails=0) == ["announce 0-30", "send 0", "drop 1-30"]


def test_only_names_of_the_announcement_are_dropped() -> None:
    """Those of waves before were sent."""
    assert announced(70, fails=40)[-3:] == ["announce 31-69", "send 31-62", "drop 63-69"]


def test_what_may_have_been_sent_is_announced_with_its_own_wave() -> None:
    """Its time begins again with each announcement, and its tries are counted. So it is never announced in vain."""
    record = ("create 1", "create 2", "create 3", "create 4")
    assert announced(7, *record) == [
        *("announce 0 5 6", "send 0", "send 5-6"),
        *("announce 1-4", "send 1-4"),
    ]
    assert announced(6, *record) == [
        *("announce 0 5", "send 0"),
        *("announce 1", "send 5 1"),
        *("announce 2-4", "send 2-4"),
    ]
    assert announced(6, *record, fails=0) == ["announce 0 5", "send 0", "drop 5"]


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
