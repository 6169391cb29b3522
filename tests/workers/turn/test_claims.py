"""Adoptions and releases: the first stage, and what its failures keep from happening."""

from __future__ import annotations

import pytest

from oarlock.controllers.objects.model import ReplicaSetStatus
from tests.controllers.builders import OTHER_UID, UID, pods, rs, slot_names
from tests.workers.turn.turn_script import claimed, plays

FIRST = f"can't adopt Pod default/{slot_names(0)[0]} (uid-{slot_names(0)[0]}): "
SECOND = f"can't adopt Pod default/{slot_names(1)[0]} (uid-{slot_names(1)[0]}): "
SAID_ONE = ReplicaSetStatus(1, 1, 1, 1, None, 1)


def test_an_adoption_counts_in_the_same_turn() -> None:
    plays(
        claimed(rs(2), pods("o")),
        """
        read replicasets web -> alive
        send adopt 0         -> 200@20
        reserve 1            -> all
        announce create 1    -> recorded
        send create 1        -> 201@21
        ok: need pods 20; drop create 1; need pods 21
        """,
    )


def test_a_surplus_of_orphans_is_adopted_then_deleted() -> None:
    """All are adopted first. A victim that was adopted has changed by that: it is deleted once the change is read."""
    plays(
        claimed(rs(1), pods("on")),
        """
        read replicasets web -> alive
        send adopt 0         -> 200@20
        reserve 1            -> all
        announce delete 1@7  -> recorded
        send delete 1@7      -> 200@21
        ok: need pods 20; answered 1@7
        """,
    )
    plays(
        claimed(rs(1), pods("oo")),
        """
        read replicasets web -> alive
        send adopt 0 1       -> 200@20 200@21
        send status 2, full 2, ready 2, available 2 @5 -> 200@30
        ok: need pods 20; need pods 21; need replicasets 30
        """,
    )


@pytest.mark.parametrize(
    ("live", "why"),
    [
        pytest.param(
            "deleting",
            "default/web has just been deleted at 2025-06-15T15:06:40Z",
            id="11.2.22 alive in the cache, deleted in truth",
        ),
        pytest.param(
            "recreated",
            f"original ReplicaSet default/web is gone: got uid {OTHER_UID}, wanted {UID}",
            id="recreated under its name",
        ),
        pytest.param("404", "NotFound", id="gone"),
        pytest.param("500", "the server answered 500", id="not told"),
        pytest.param("lost", "no answer within 4 s", id="no answer"),
        pytest.param("junk", "not a ReplicaSet: JSON is malformed: invalid character (byte 0)", id="unreadable"),
    ],
)
def test_the_gate(live: str, why: str) -> None:
    """One live look at the owner for all adoptions of the turn: no patch, no create, no status."""
    plays(
        claimed(rs(5), pods("oo")),
        f"""
        read replicasets web -> {live}
        fails ({FIRST}{why}; {SECOND}{why}), retry
        """,
    )


def test_releases_pass_the_gate() -> None:
    plays(
        claimed(rs(2), pods("om")),
        f"""
        read replicasets web -> deleting
        send release 1       -> 200@20
        fails ({FIRST}default/web has just been deleted at 2025-06-15T15:06:40Z), retry: need pods 20
        """,
    )


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param("500", "the server answered 500", id="server error"),
        pytest.param("lost", "no answer within 4 s", id="no answer"),
        pytest.param("422", "Invalid", id="another controls it by now"),
        pytest.param("conflict", "Conflict", id="another pod by that name"),
        pytest.param("403", "Forbidden", id="not allowed"),
        pytest.param("late", "its deadline passed before it could be sent", id="too late"),
    ],
)
def test_a_failing_adoption_ends_the_turn(answer: str, message: str) -> None:
    """11.2.20: nothing is created, no status written; what was adopted beside it has to be read."""
    plays(
        claimed(rs(5), pods("oo")),
        f"""
        read replicasets web -> alive
        send adopt 0 1       -> {answer} 200@20
        fails (adopt Pod default/{slot_names(0)[0]}: {message}), retry: need pods 20
        """,
    )


def test_429_is_waited_for() -> None:
    plays(
        claimed(rs(1), pods("o")),
        f"""
        read replicasets web -> alive
        send adopt 0         -> 429/7
        fails (adopt Pod default/{slot_names(0)[0]}: the server answered 429), retry in 7000 ms
        """,
    )


def test_a_pod_that_has_gone_is_not_adopted() -> None:
    """11.4.4: not found is no error and nothing to be read; the turn goes on without the pod."""
    plays(
        claimed(rs(2, status=SAID_ONE), pods("oo")),
        """
        read replicasets web -> alive
        send adopt 0 1       -> 404 200@20
        reserve 1            -> all
        announce create 2    -> recorded
        send create 2        -> 201@21
        ok: need pods 20; drop create 2; need pods 21
        """,
    )


@pytest.mark.parametrize(
    ("answer", "changes"),
    [
        pytest.param("200@20", "need pods 20; drop create 1; need pods 21", id="released"),
        pytest.param("404", "drop create 1; need pods 21", id="gone"),
        pytest.param("422", "drop create 1; need pods 21", id="no longer ours"),
    ],
)
def test_a_release_makes_room_in_the_same_turn(answer: str, changes: str) -> None:
    plays(
        claimed(rs(1), pods("m")),
        f"""
        send release 0    -> {answer}
        reserve 1         -> all
        announce create 1 -> recorded
        send create 1     -> 201@21
        ok: {changes}
        """,
    )


def test_a_failing_release_ends_the_turn() -> None:
    plays(
        claimed(rs(2), pods("m")),
        f"""
        send release 0 -> 500
        fails (release Pod default/{slot_names(0)[0]}: the server answered 500), retry
        """,
    )


def test_every_error_is_told() -> None:
    first, second = slot_names(0, 1)
    plays(
        claimed(rs(2), pods("om")),
        f"""
        read replicasets web   -> alive
        send release 1 adopt 0 -> 403 500
        fails (release Pod default/{second}: Forbidden; adopt Pod default/{first}: the server answered 500), retry
        """,
    )


def test_unsatisfied_claims_all_the_same() -> None:
    """Only creates and deletes wait for what was announced."""
    plays(
        claimed(rs(9), pods("o"), needs="pods=90"),
        """
        read replicasets web -> alive
        send adopt 0         -> 200@20
        ok: need pods 20
        """,
    )


@pytest.mark.parametrize("letters", ["o", "m", "oo", "mo"])
def test_an_owner_being_deleted_claims_nothing(letters: str) -> None:
    """11.2.21: no adoption, no release, no create."""
    plays(claimed(rs(5, deleting_ms=1), pods(letters)), "ok")
