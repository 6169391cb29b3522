"""Whoever may write to Redis may write into a key's record. Only what the decision asks for is sent."""

from __future__ import annotations

import pytest

from oarlock.broker.expectations import Expectations
from tests.controllers.builders import UID, WEB_SLOTS, pods, rs
from tests.workers.turn.turn_script import claimed, plays

RECORD = ["owner", UID]


def planted(*fields: str) -> Expectations:
    found = Expectations.parse([*RECORD, *fields])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("delete", "ends"),
    [
        pytest.param("stranger", "drop delete db-0", id="of a pod that is not the owner's"),
        pytest.param(f"uid-{WEB_SLOTS.name(3)}", "drop delete db-0", id="of a pod that is not there"),
    ],
)
def test_a_delete_of_a_pod_that_is_none_of_the_owners(delete: str, ends: str) -> None:
    """It is not sent. A pod that the cache does not show has gone from this owner."""
    claim = claimed(rs(1), pods("R"))
    record = planted("delete pods/db-0", f"pending since_ms=1 uid={delete} rv=7 until_ms=5")
    plays(
        claim._replace(expectations=record),
        f"""
        send status 1, full 1, ready 1, available 1 @5 -> 200@30
        ok: {ends}; need replicasets 30
        """,
    )


def test_a_delete_of_a_pod_that_is_not_too_many() -> None:
    claim = claimed(rs(1), pods("R"), "delete 0@7")
    plays(claim, "send status 1, full 1, ready 1, available 1 @5 -> 200@30\nok: need replicasets 30")


def test_only_names_of_the_owner_are_created() -> None:
    """A strange one takes a place until a look ends it."""
    claim = claimed(rs(3))
    record = planted("create pods/db-0", "pending since_ms=1 until_ms=5")
    plays(
        claim._replace(expectations=record),
        """
        reserve 1           -> all
        announce create 0 1 -> recorded
        send create 0       -> 201@20
        reserve 1           -> all
        send create 1       -> 201@21
        ok: drop create 0; need pods 20; drop create 1; need pods 21
        """,
    )
    record = planted("create pods/db-0", "pending since_ms=1 over", "reserved pods/db-0", "over")
    plays(
        claimed(rs(0))._replace(expectations=record),
        """
        read pods db-0    -> 404
        ok: drop create db-0; drop reserved db-0
        """,
    )


def test_an_entry_that_nobody_announces_is_dropped_and_does_not_keep_the_key_busy() -> None:
    claim = claimed(rs(1), pods("R"))
    plays(
        claim._replace(expectations=planted("exec pods/a", "pending since_ms=1")),
        """
        send status 1, full 1, ready 1, available 1, ({why}) @5 -> 200@30
        fails ({why}), retry: drop exec; drop exec a; need replicasets 30
        """.replace("{why}", "the expectations of web have an entry that none of ours announces: left out"),
    )


def test_an_entry_of_something_that_is_no_pod_is_dropped_by_its_own_name() -> None:
    strange = ("create nodes/n1", "delete nodes/n2", "reserved nodes/n3")
    fields = [text for each in strange for text in (each, "pending since_ms=1 uid=u rv=2")]
    outcome = plays(
        claimed(None)._replace(expectations=planted(*fields)),
        "gone",
    )
    assert outcome.changes == []
