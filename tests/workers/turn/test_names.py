"""Names that are reserved, borne by others, or blocked."""

from __future__ import annotations

import pytest

from tests.controllers.builders import pods, rs
from tests.workers.turn.turn_script import claimed, plays


def test_reserved_names_are_used_first() -> None:
    """Their create may still land: whoever creates them takes the place of it."""
    plays(
        claimed(rs(3), (), "reserved 5", "reserved 2"),
        """
        reserve 1             -> all
        announce create 2 5 0 -> recorded
        send create 2         -> 201@20
        reserve 2             -> all
        send create 5 0       -> 201@21 201@22
        ok: drop create 2; need pods 20; drop create 5; need pods 21; drop create 0; need pods 22
        """,
    )


def test_a_reserved_name_on_a_pod_that_ends_keeps_its_slot() -> None:
    """Once that pod has gone its create may land again. The key comes back when that time is over."""
    plays(claimed(rs(1), pods("t"), "reserved 0"), "ok")


def test_only_what_is_missing_beside_it_is_created() -> None:
    plays(
        claimed(rs(2), pods("t"), "reserved 0"),
        """
        reserve 1         -> all
        announce create 1 -> recorded
        send create 1     -> 201@20
        ok: drop create 1; need pods 20
        """,
    )


@pytest.mark.parametrize(
    ("borne", "changes"),
    [
        pytest.param("0=ours", "", id="ours, come since: it will be read"),
        pytest.param("0=orphan", "", id="an orphan, come since: it will be read, perhaps adopted"),
        pytest.param("0=foreign", ": blocked 0=stranger", id="foreign: blocked while it lives"),
    ],
)
def test_a_name_borne_by_a_cached_pod(borne: str, changes: str) -> None:
    """Nothing was recorded, nothing is sent, and the next turn comes at once."""
    plays(
        claimed(rs(1)),
        f"""
        reserve 1         -> all
        announce create 0 -> {borne}
        ok in 0 ms{changes}
        """,
    )


def test_of_names_some_of_which_are_borne_none_is_announced() -> None:
    plays(
        claimed(rs(3)),
        """
        reserve 1             -> all
        announce create 0 1 2 -> 1=foreign 2=ours
        ok in 0 ms: blocked 1=stranger
        """,
    )


def test_names_borne_in_a_later_announcement() -> None:
    """What was answered before stays answered; what was announced before and not sent is expected no longer."""
    plays(
        claimed(rs(4), (), "create 0", "create 1"),
        """
        reserve 1           -> all
        announce create 2 3 -> recorded
        send create 2       -> 201@20
        reserve 2           -> all
        announce create 0   -> 0=foreign
        ok in 0 ms: drop create 2; need pods 20; blocked 0=stranger; drop create 3
        """,
    )


@pytest.mark.parametrize(
    ("seen", "then"),
    [
        pytest.param(
            "foreign",
            """announce create 1 -> recorded
            send create 1        -> 201@20
            ok: drop create 1; need pods 20""",
            id="still there: the next name",
        ),
        pytest.param(
            "none",
            """announce create 0 -> recorded
            send create 0        -> 201@20
            ok: drop blocked 0; drop create 0; need pods 20""",
            id="gone: the name is free",
        ),
        pytest.param(
            "another",
            """announce create 0 -> 0=foreign
            ok in 0 ms: drop blocked 0; blocked 0=stranger""",
            id="gone, the name borne by yet another: found out and blocked anew",
        ),
    ],
)
def test_a_blocked_name(seen: str, then: str) -> None:
    plays(
        claimed(rs(1), (), "blocked 0=stranger"),
        f"""
        look pods 0 -> {seen}
        reserve 1   -> all
        {then}
        """,
    )


def test_blocked_names_do_not_end_the_slow_start() -> None:
    """AlreadyExists is nobody's failure: the batches go on, and what is missing follows in the next turn."""
    plays(
        claimed(rs(2)),
        """
        reserve 1           -> all
        announce create 0 1 -> recorded
        send create 0       -> exists
        read pods 0         -> foreign@19
        reserve 1           -> all
        send create 1       -> 201@21
        ok in 0 ms: drop create 0; need pods 19; blocked 0=stranger; drop create 1; need pods 21
        """,
    )


def test_a_blocked_name_is_not_looked_at_before_the_cache_can_tell() -> None:
    """It was blocked by an answer of the API; the cache may not have come to that pod."""
    plays(claimed(rs(1), (), "blocked 0=stranger", needs="pods=19"), "ok")
    plays(
        claimed(rs(1), pods("tR"), "blocked 2=stranger", "answered 1@7"),
        "send status 1, full 1, ready 1, available 1 @5 -> 200@30\nok: need replicasets 30",
    )
