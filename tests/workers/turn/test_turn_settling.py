"""What an earlier holder left unanswered is written again before anything else, and never settled by looking."""

from __future__ import annotations

import pytest
from turn_script import claimed, plays

from controllers.model import ReplicaSet
from tests.decide.builders import OTHER_UID, pods, rs, with_fields

SLOW = "no answer within 4 s"


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        pytest.param("201@20", "ok in 0 ms: drop create 0; need pods 20", id="created now"),
        pytest.param(
            "exists",
            "read pods 0 -> ours@20\nok in 0 ms: drop create 0; need pods 20",
            id="created then: AlreadyExists",
        ),
        pytest.param("exists", "read pods 0 -> 404\nok in 0 ms: drop create 0", id="created then, gone since"),
        pytest.param(
            "exists",
            "read pods 0 -> foreign@20\nok in 0 ms: drop create 0; need pods 20; blocked 0=stranger",
            id="foreign: the name is blocked",
        ),
        pytest.param("exists", "read pods 0 -> lost\nretry", id="exists, but whose"),
        pytest.param(
            "quota", "fails (exceeded quota: pods=2), retry: drop create 0", id="refused: the name stays held"
        ),
        pytest.param("terminating", "ok in 0 ms: drop create 0", id="namespace terminating"),
        pytest.param("500", "fails (the server answered 500), retry", id="500: stays announced"),
        pytest.param("lost", f"fails ({SLOW}), retry", id="no answer: stays announced"),
        pytest.param("429/7", "fails (the server answered 429), retry in 7000 ms", id="429: says nothing of the first"),
        pytest.param("late", "retry", id="too late: says nothing of the first"),
        pytest.param("unsent", "fails (cannot connect), retry", id="not connected: says nothing of the first"),
    ],
)
def test_a_create(answer: str, then: str) -> None:
    plays(
        claimed(rs(3), pods("R"), "create 0"),
        f"""
        reserve 1     -> all
        send create 0 -> {answer}
        {then}
        """,
    )


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        pytest.param("200@20", "ok in 0 ms: answered 0@7", id="deleted now"),
        pytest.param("404", "ok in 0 ms: answered 0@7", id="deleted then: until the cache shows it"),
        pytest.param(
            "conflict", "read pods 0 -> another@20\nok in 0 ms: answered 0@7", id="deleted then, the name borne anew"
        ),
        pytest.param(
            "conflict",
            "read pods 0 -> ours@20\nretry: drop delete 0; need pods 20",
            id="changed since: neither of the two sendings can take effect",
        ),
        pytest.param("conflict", "read pods 0 -> lost\nretry", id="conflict, but why"),
        pytest.param("403", "fails (unable to delete pods: Forbidden), retry: drop delete 0", id="refused"),
        pytest.param("500", "fails (unable to delete pods: the server answered 500), retry", id="500: stays announced"),
        pytest.param("lost", f"fails (unable to delete pods: {SLOW}), retry", id="no answer: stays announced"),
        pytest.param(
            "429",
            "fails (unable to delete pods: the server answered 429), retry in 1000 ms",
            id="429: says nothing of the first",
        ),
        pytest.param("late", "retry", id="too late: says nothing of the first"),
        pytest.param(
            "unsent",
            "fails (unable to delete pods: cannot connect), retry",
            id="not connected: says nothing of the first",
        ),
    ],
)
def test_a_delete(answer: str, then: str) -> None:
    """Whatever the owner asks for by now: it wants a pod more, and gets the delete announced before."""
    plays(
        claimed(rs(3), pods("RR"), "delete 0@7"),
        f"""
        reserve 1       -> all
        send delete 0@7 -> {answer}
        {then}
        """,
    )


def test_all_at_once_with_the_version_announced_then() -> None:
    """Deletes first; answered ones, held and blocked names are none of its business; nothing is decided meanwhile."""
    plays(
        claimed(
            rs(9),
            pods("RRRR"),
            "create 5",
            "create 4",
            "delete 1@3",
            "delete 0@4",
            "answered 2@3",
            "hold 4",
            "blocked 7=x",
        ),
        """
        reserve 4                              -> all
        send delete 1@3 0@4 create 5 4         -> 200@20 404 201@21 exists
        read pods 4                            -> ours@19
        ok in 0 ms: answered 1@3; answered 0@4; drop create 5; need pods 21; drop create 4; need pods 19
        """,
    )


def test_what_failed_does_not_hide_what_was_settled() -> None:
    plays(
        claimed(rs(9), (), "create 0", "create 1"),
        """
        reserve 2       -> all
        send create 0 1 -> lost 201@20
        fails (no answer within 4 s), retry: drop create 1; need pods 20
        """,
    )


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(with_fields(rs(0), deleting_ms=1), id="of an owner that is being deleted"),
        pytest.param(rs(0), id="of an owner that wants none"),
    ],
)
def test_creates_are_forced(owner: ReplicaSet) -> None:
    """An absence would prove nothing: the first sending may still be under way."""
    plays(
        claimed(owner, (), "create 0", needs="pods=90"),
        """
        reserve 1     -> all
        send create 0 -> 201@20
        ok in 0 ms: drop create 0; need pods 20
        """,
    )


@pytest.mark.parametrize(
    ("grant", "then"),
    [
        pytest.param(
            "3 wait 50",
            "send delete 1@7 0@7 create 2 -> 200@20 200@21 201@22\n"
            "retry in 50 ms: answered 1@7; answered 0@7; drop create 2; need pods 22",
            id="three of four",
        ),
        pytest.param(
            "1 wait 50",
            "send delete 1@7 -> 200@20\nretry in 50 ms: answered 1@7",
            id="one of four: not all the deletes",
        ),
        pytest.param("0 wait 90", "retry in 90 ms", id="none"),
    ],
)
def test_as_many_as_the_rate_limit_grants(grant: str, then: str) -> None:
    plays(
        claimed(rs(9), pods("RR"), "create 2", "create 3", "delete 1@7", "delete 0@7"),
        f"""
        reserve 4 -> {grant}
        {then}
        """,
    )


def test_a_template_that_makes_no_pods() -> None:
    plays(claimed(rs(1, template=b"{}"), (), "create 0"), "fails (unable to create pods, no labels), retry")


def test_the_record_of_a_predecessor_is_dropped() -> None:
    """11.2.16: of the same name, another UID: its names and UIDs mean nothing to this one, which starts at once."""
    plays(claimed(rs(1), (), "create 0", "delete 1@7", record_owner=OTHER_UID), "gone in 0 ms")
    plays(claimed(rs(1), (), "hold 0", record_owner=OTHER_UID, needs="pods=90"), "gone in 0 ms")


def test_an_owner_that_is_gone_leaves_nothing() -> None:
    """11.2.15: the turn that misses it drops the record, whatever is in it, and writes nothing."""
    plays(claimed(None, (), "create 0", "answered 1@7", "blocked 2=x"), "gone")
    plays(claimed(None), "gone")
