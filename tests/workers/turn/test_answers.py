"""What each answer to a create or a delete comes to: for the record, for the owner's status, for the next turn."""

from __future__ import annotations

import pytest

from oarlock.controllers.objects.model import Pod, ReplicaSet, ReplicaSetStatus
from oarlock.controllers.pods.events import Event
from tests.controllers.builders import pods, rs, slot_names
from tests.workers.turn.turn_script import claimed, plays

NAME = slot_names(0)[0]
SLOW = "no answer within 4 s"


def failed(error: str, delete: bool = False) -> list[str]:
    """The lines of a turn whose create or delete failed, but for the changes of the record."""
    status = f"1, full 1, ready 1, available 1, FailedDelete ({error})" if delete else f"0, FailedCreate ({error})"
    return [f"send status {status} @5 -> 200@30", f"fails ({error}), retry"]


def create_failed(error: str, changes: str = "drop create 0; ", wait: str = "", said: str = "") -> str:
    status, end = failed(error)
    return f"{status}\n{end}{wait}: {changes}need replicasets 30{said}"


def create_refused(error: str) -> str:
    """Other names come first for a while."""
    return create_failed(error, changes="drop create 0; passed 0; ")


def create_open(error: str) -> str:
    """It stays announced, with the last answer."""
    return create_failed(error, changes="", said=f"; said create pods/0: {error}")


def delete_failed(error: str, changes: str = "drop delete 0; ", wait: str = "", said: str = "") -> str:
    status, end = failed(f"unable to delete pods: {error}", delete=True)
    return f"{status}\n{end}{wait}: {changes}need replicasets 30{said}"


def delete_open(error: str) -> str:
    """It stays announced, with the last answer."""
    return delete_failed(error, changes="", said=f"; said delete pods/0: {error}")


CREATED = Event("Normal", "SuccessfulCreate", f"Created pod: {NAME}")
DELETED = Event("Normal", "SuccessfulDelete", f"Deleted pod: {NAME}")


def create_warning(error: str) -> Event:
    return Event("Warning", "FailedCreate", f"Error creating: {error}")


def delete_warning(error: str) -> Event:
    return Event("Warning", "FailedDelete", f"Error deleting: {error}")


QUOTA = "exceeded quota: pods=2"


@pytest.mark.parametrize(
    ("answer", "then", "told"),
    [
        pytest.param("201@20", "ok: drop create 0; need pods 20", [CREATED], id="created: until it is read"),
        pytest.param(
            "exists", "read pods 0 -> ours@21\nok in 0 ms: drop create 0; need pods 21", [], id="exists, ours: done"
        ),
        pytest.param(
            "exists",
            "read pods 0 -> orphan@21\nok in 0 ms: drop create 0; need pods 21",
            [],
            id="exists, an orphan: to be read, then perhaps adopted",
        ),
        pytest.param(
            "exists",
            "read pods 0 -> foreign@21\nok in 0 ms: drop create 0; need pods 21; blocked 0=stranger",
            [],
            id="exists, foreign: the name is blocked",
        ),
        pytest.param("exists", "read pods 0 -> 404\nok in 0 ms: drop create 0", [], id="exists, gone since"),
        pytest.param(
            "exists?",
            "read pods 0 -> ours@21\nok in 0 ms: drop create 0; need pods 21",
            [],
            id="said with 500, and it is seen",
        ),
        pytest.param("exists?", "read pods 0 -> 404\nretry", [], id="said with 500, not seen: stays announced"),
        pytest.param("exists", "read pods 0 -> junk\nretry", [], id="exists, unreadable: stays announced"),
        pytest.param("exists", "read pods 0 -> 500\nretry", [], id="exists, not told by whom: stays announced"),
        pytest.param("quota", create_refused(QUOTA), [create_warning(QUOTA)], id="quota: refused for certain"),
        pytest.param("terminating", "ok: drop create 0", [], id="namespace terminating: no failure, no event"),
        pytest.param("422", create_refused("Invalid"), [create_warning("Invalid")], id="invalid"),
        pytest.param(
            "conflict", create_refused("Conflict"), [create_warning("Conflict")], id="conflict of another kind"
        ),
        pytest.param(
            "429/7",
            create_failed("the server answered 429", wait=" in 7000 ms"),
            [create_warning("the server answered 429")],
            id="429: not before Retry-After",
        ),
        pytest.param(
            "429",
            create_failed("the server answered 429", wait=" in 1000 ms"),
            [create_warning("the server answered 429")],
            id="429 without Retry-After: a second",
        ),
        pytest.param(
            "500",
            create_open("the server answered 500"),
            [create_warning("the server answered 500")],
            id="500: unknown, stays announced",
        ),
        pytest.param("lost", create_open(SLOW), [create_warning(SLOW)], id="no answer: unknown, stays announced"),
        pytest.param("late", "retry: drop create 0", [], id="too late to be sent: never sent, nothing wrong"),
        pytest.param(
            "unsent",
            create_failed("cannot connect"),
            [create_warning("cannot connect")],
            id="not connected: never sent",
        ),
    ],
)
def test_create(answer: str, then: str, told: list[Event]) -> None:
    outcome = plays(
        claimed(rs(1)),
        f"""
        reserve 1         -> all
        announce create 0 -> recorded
        send create 0     -> {answer}
        {then}
        """,
    )
    assert outcome.events == told


def with_one(replicas: int) -> ReplicaSet:
    """An owner that has said that it has one pod."""
    return rs(replicas, status=ReplicaSetStatus(1, 1, 1, 1, None, 1))


@pytest.mark.parametrize(
    ("answer", "then", "told"),
    [
        pytest.param("200@20", "ok: answered 0@7", [DELETED], id="deleted: until the cache shows it"),
        pytest.param("404", "ok: answered 0@7", [], id="11.4.5 not found: gone, and no event"),
        pytest.param(
            "conflict",
            "read pods 0 -> another@21\nok: answered 0@7",
            [],
            id="conflict, other UID: gone, by name reused",
        ),
        pytest.param("conflict", "read pods 0 -> 404\nok: answered 0@7", [], id="conflict, gone since"),
        pytest.param(
            "conflict",
            "read pods 0 -> ours@21\nretry: drop delete 0; need pods 21",
            [],
            id="conflict, same UID: refused for certain, ranked again when the change is read",
        ),
        pytest.param(
            "conflict", "read pods 0 -> 500\nretry", [], id="conflict, the look told nothing: stays announced"
        ),
        pytest.param("403", delete_failed("Forbidden"), [delete_warning("Forbidden")], id="forbidden"),
        pytest.param(
            "429/7",
            delete_failed("the server answered 429", wait=" in 7000 ms"),
            [delete_warning("the server answered 429")],
            id="429: not before Retry-After",
        ),
        pytest.param(
            "500",
            delete_open("the server answered 500"),
            [delete_warning("the server answered 500")],
            id="500: unknown, stays announced",
        ),
        pytest.param("lost", delete_open(SLOW), [delete_warning(SLOW)], id="no answer: unknown, stays announced"),
        pytest.param("late", "retry: drop delete 0", [], id="too late to be sent"),
        pytest.param("unsent", delete_failed("cannot connect"), [delete_warning("cannot connect")], id="not connected"),
    ],
)
def test_delete(answer: str, then: str, told: list[Event]) -> None:
    outcome = plays(
        claimed(with_one(0), pods("R")),
        f"""
        reserve 1           -> all
        announce delete 0@7 -> recorded
        send delete 0@7     -> {answer}
        {then}
        """,
    )
    assert outcome.events == told


def test_deletes_go_all_at_once() -> None:
    """Each is sorted on its own; those that met a conflict are looked at together."""
    outcome = plays(
        claimed(rs(0, status=ReplicaSetStatus(4, 4, 4, 4, None, 1)), pods("RRRR")),
        """
        reserve 4                       -> all
        announce delete 0@7 1@7 2@7 3@7 -> recorded
        send delete 0@7 1@7 2@7 3@7     -> 200@20 conflict 404 conflict
        read pods 1 3                   -> ours@22 another@23
        retry: answered 0@7; answered 2@7; drop delete 1; need pods 22; answered 3@7
        """,
    )
    assert [event.reason for event in outcome.events] == ["SuccessfulDelete"]


@pytest.mark.parametrize(
    ("cached", "active", "then"),
    [
        pytest.param(pods("RR"), 2, "ok", id="11.2.18 still there: wait"),
        pytest.param(pods("tR"), 1, "ok: drop delete 0", id="11.2.18 ending: seen"),
        pytest.param(pods("RR")[1:], 1, "ok: drop delete 0", id="11.2.18 gone: seen"),
        pytest.param(pods("FR"), 1, "ok", id="11.2.18 failed, but not gone: wait"),
    ],
)
def test_an_answered_delete_is_waited_for(cached: tuple[Pod, ...], active: int, then: str) -> None:
    """The first of two pods was deleted, of an owner that wants one: nothing more is deleted before that is seen."""
    said = ReplicaSetStatus(active, active, active, active, None, 1)
    plays(claimed(rs(1, status=said), cached, "answered 0@7"), then)


def test_another_pods_end_is_not_the_one_waited_for() -> None:
    """11.2.18: of two pods that end only the one that was deleted by us counts, however often it is seen."""
    plays(claimed(rs(1, status=ReplicaSetStatus(1, 1, 1, 1, None, 1)), pods("tR"), "answered 1@7"), "ok")


def test_several_deletes_are_seen_one_by_one() -> None:
    """11.4.2: unsatisfied until all of them are seen, in whatever order."""
    said = ReplicaSetStatus(2, 2, 2, 2, None, 1)
    lines = ("answered 0@7", "answered 1@7", "answered 2@7")
    plays(claimed(rs(1, status=said), pods("RtR"), *lines), "ok: drop delete 1")
    said = ReplicaSetStatus(1, 1, 1, 1, None, 1)
    plays(claimed(rs(1, status=said), pods("ttR"), "answered 0@7", "answered 1@7"), "ok: drop delete 0; drop delete 1")
