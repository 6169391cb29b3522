"""The status: when it is written, on what version, and what its answers come to."""

from __future__ import annotations

import pytest

from oarlock.controllers.objects.model import Condition, LabelSelector, ReplicaSetStatus
from oarlock.workers.turn.status import PUT_OFF_MS, LateStatus
from tests.controllers.builders import NOW_MS, UID, S, pod, pods, rs, slot_names
from tests.workers.turn.turn_script import claimed, plays

ONE = "send status 1, full 1, ready 1, available 1 @5"
FAILURE = Condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota", NOW_MS - S)


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        pytest.param("200@30", "ok: need replicasets 30", id="written: to be read before the next"),
        pytest.param("conflict", "retry", id="the owner has changed: computed again, no error"),
        pytest.param("404", "ok", id="the owner has gone"),
        pytest.param("429/7", "retry in 7000 ms", id="429: not before Retry-After, no error"),
        pytest.param("late", "retry", id="too late to be sent: no error"),
        pytest.param("unsent", "retry", id="not connected: no error"),
        pytest.param("403", "fails (status of default/web: Forbidden), retry", id="11.2.11 refused: the turn failed"),
        pytest.param("500", "fails (status of default/web: the server answered 500), retry", id="11.2.11 server error"),
        pytest.param("lost", "fails (status of default/web: no answer within 4 s), retry", id="no answer"),
    ],
)
def test_one_write_whatever_the_answer(answer: str, then: str) -> None:
    """11.2.12: never repeated on a fresh version, which would put an older status over a newer one."""
    plays(claimed(rs(1), pods("R")), f"{ONE} -> {answer}\n{then}")


def test_nothing_new() -> None:
    """11.2.1: two of two, and the status says so: no request at all."""
    plays(claimed(rs(2, status=ReplicaSetStatus(2, 2, 2, 2, None, 1)), pods("RR")), "ok")


def test_not_while_our_own_write_is_unread() -> None:
    """The version at hand is not that of the last status; the key is woken when the cache has come to it."""
    plays(claimed(rs(1), pods("R"), needs="replicasets=30"), "ok")
    plays(claimed(rs(1), pods("R"), needs="pods=30 replicasets=30"), "ok")


def test_while_other_writes_are_unread() -> None:
    """Their events wake the key. If these are long in coming, it is written all the same."""
    claim, late = claimed(rs(9), pods("R"), needs="pods=30"), LateStatus()
    plays(claim, "ok", late=late)
    plays(claim, f"{ONE} -> 200@30\nok: need replicasets 30", late=late, now_ms=NOW_MS + PUT_OFF_MS)


def test_terminating_pods_are_told_where_the_cluster_keeps_them() -> None:
    said = ReplicaSetStatus(1, 1, 1, 1, None, 1)
    plays(
        claimed(rs(1, status=said), pods("Rt")),
        "send status 1, full 1, ready 1, available 1, terminating 1 @5 -> 200@30\nok: need replicasets 30",
        reports_terminating=True,
    )
    plays(claimed(rs(1, status=said), pods("Rt")), "ok")


def test_generation_is_followed() -> None:
    plays(claimed(rs(0, generation=3)), "send status 0, observed 3 @5 -> 200@30\nok: need replicasets 30")


def test_replica_failure_appears() -> None:
    """With the error of the first create that failed; the turn fails, and says so after the status is written."""
    plays(
        claimed(rs(3), pods("R")),
        """
        reserve 1           -> all
        announce create 1 2 -> recorded
        send create 1       -> quota
        send status 1, full 1, ready 1, available 1, FailedCreate (exceeded quota: pods=2) @5 -> 200@30
        fails (exceeded quota: pods=2), retry: drop create 1; passed 1; drop create 2; need replicasets 30
        """,
    )


def test_replica_failure_stays_as_it_is() -> None:
    """A further failure writes no status of its own: it would end in a write with every retry."""
    plays(
        claimed(rs(3, status=ReplicaSetStatus(1, 1, 1, 1, None, 1, (FAILURE,))), pods("R")),
        """
        reserve 1           -> all
        announce create 1 2 -> recorded
        send create 1       -> 422
        fails (Invalid), retry: drop create 1; passed 1; drop create 2
        """,
    )


def test_replica_failure_goes() -> None:
    """With the first turn that meets no failure, also one that creates nothing."""
    owner = rs(1, status=ReplicaSetStatus(1, 1, 1, 1, None, 1, (FAILURE,)))
    plays(claimed(owner, pods("R")), f"{ONE.replace(' @5', ', no conditions @5')} -> 200@30\nok: need replicasets 30")


FAILED_BEFORE = ReplicaSetStatus(1, 1, 1, 1, None, 1, (FAILURE,))


@pytest.mark.parametrize(
    ("replicas", "announced"), [pytest.param(3, 1, id="too few"), pytest.param(0, 1, id="too many")]
)
def test_replica_failure_stays_when_the_rate_limit_grants_nothing(replicas: int, announced: int) -> None:
    """Nothing was attempted, so nothing is known to be better: no status is written."""
    claim, late = claimed(rs(replicas, status=FAILED_BEFORE), pods("R")), LateStatus()
    for now_ms in (NOW_MS, NOW_MS + PUT_OFF_MS):  # nor once a status can be put off no more
        plays(claim, f"reserve {announced} -> 0 wait 250\nok in 250 ms", now_ms=now_ms, late=late)


def test_replica_failure_stays_while_our_own_writes_are_unread() -> None:
    plays(claimed(rs(3, status=FAILED_BEFORE), pods("R"), needs="pods=30"), "ok")


def test_replica_failure_stays_when_it_was_too_late_to_send() -> None:
    plays(
        claimed(rs(2, status=FAILED_BEFORE), pods("R")),
        """
        reserve 1         -> all
        announce create 1 -> recorded
        send create 1     -> late
        retry: drop create 1
        """,
    )


def test_replica_failure_goes_when_the_last_of_those_that_went_well_was_too_late() -> None:
    plays(
        claimed(rs(3, status=FAILED_BEFORE), pods("R")),
        """
        reserve 1           -> all
        announce create 1 2 -> recorded
        send create 1       -> 201@20
        reserve 1           -> all
        send create 2       -> late
        send status 1, full 1, ready 1, available 1, no conditions @5 -> 200@30
        retry: drop create 1; need pods 20; drop create 2; need replicasets 30
        """,
    )


def test_replica_failure_goes_when_a_part_was_granted_and_went_well() -> None:
    claim, late = claimed(rs(0, status=ReplicaSetStatus(2, 2, 2, 2, None, 1, (FAILURE,))), pods("RR")), LateStatus()
    late.put_off(UID, NOW_MS - PUT_OFF_MS)
    plays(
        claim,
        """
        reserve 2           -> 1 wait 250
        announce delete 0@7 -> recorded
        send delete 0@7     -> 200@21
        send status 2, full 2, ready 2, available 2, no conditions @5 -> 200@30
        ok in 250 ms: answered 0@7; need replicasets 30
        """,
        late=late,
    )


def test_the_failure_outlives_a_conflict_of_its_status() -> None:
    plays(
        claimed(rs(3)),
        """
        reserve 1             -> all
        announce create 0 1 2 -> recorded
        send create 0         -> quota
        send status 0, FailedCreate (exceeded quota: pods=2) @5 -> conflict
        fails (exceeded quota: pods=2), retry: drop create 0; passed 0; drop create 1; drop create 2
        """,
    )


def test_the_first_failure_is_told_when_the_status_fails_as_well() -> None:
    plays(
        claimed(rs(3)),
        """
        reserve 1             -> all
        announce create 0 1 2 -> recorded
        send create 0         -> quota
        send status 0, FailedCreate (exceeded quota: pods=2) @5 -> 500
        fails (exceeded quota: pods=2), retry: drop create 0; passed 0; drop create 1; drop create 2
        """,
    )


def test_a_template_that_makes_no_pods() -> None:
    """No request, no event: the condition says why."""
    outcome = plays(
        claimed(rs(1, template=b"{}")),
        """
        send status 0, FailedCreate (unable to create pods, no labels) @5 -> 200@30
        fails (unable to create pods, no labels), retry: need replicasets 30
        """,
    )
    assert outcome.events == []


READY_FOR_MS = {"pending": None, "just now": 0, "2 s": 2 * S, "4.3 s": 4_300}


def test_looks_again_when_the_next_pod_becomes_available() -> None:
    """11.2.23: of four, one pending, the others ready for 0, 2 and 4.3 of 5 s."""
    found = [
        pod(name, ready=since is not None, ready_since_ms=0 if since is None else NOW_MS - since)
        for name, since in zip(slot_names(0, 1, 2, 3), READY_FOR_MS.values(), strict=True)
    ]
    plays(
        claimed(rs(4, min_ready_seconds=5), found),
        """
        send status 4, full 4, ready 3 @5 -> 200@30
        ok in 700 ms: need replicasets 30
        """,
    )


def test_looks_again_though_the_status_says_so_already() -> None:
    owner = rs(1, min_ready_seconds=5, status=ReplicaSetStatus(1, 1, 1, 0, None, 1))
    plays(claimed(owner, [pod(slot_names(0)[0], ready_since_ms=NOW_MS - S)]), "ok in 4000 ms")


def test_a_failure_comes_again_with_back_off_and_a_pod_is_looked_at_when_it_becomes_available() -> None:
    """The pod's moment is known, and no back-off of the failure puts it off."""
    plays(
        claimed(rs(2, min_ready_seconds=5), [pod(slot_names(0)[0], ready_since_ms=NOW_MS - 4_900)]),
        """
        reserve 1         -> all
        announce create 1 -> recorded
        send create 1     -> quota
        send status 1, full 1, ready 1, FailedCreate (exceeded quota: pods=2) @5 -> 200@30
        fails (exceeded quota: pods=2), retry: drop create 1; passed 1; need replicasets 30; again in 100 ms
        """,
    )


def test_the_earliest_of_two_times_counts() -> None:
    """A name passed over asks for a look in 60 s, a pod that becomes available for one in 4 s."""
    (first,) = slot_names(0)
    found = [pod(first, ready_since_ms=NOW_MS - S)]
    plays(
        claimed(rs(1, min_ready_seconds=5, status=ReplicaSetStatus(1, 1, 1, 0, None, 1)), found, "passed 7"),
        "ok in 4000 ms",
    )


def test_an_invalid_selector() -> None:
    """Nothing is done about the pods, no status is written, and no time will mend it."""
    owner = rs(
        9,
        selector=LabelSelector(error="no such operator", match_labels={}),
        min_ready_seconds=5,
        status=ReplicaSetStatus(2, 2, 2, 1, None, 1),
    )
    plays(claimed(owner, pods("Ro")), "ok")
