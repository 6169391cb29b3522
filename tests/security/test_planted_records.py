"""Whoever may write to Redis may write into a key's record. It is settled as far as it names what is the owner's."""

from __future__ import annotations

import pytest

from broker.values import Change, Record
from controllers.daemonset.names import name as daemon_name
from controllers.registry import CONTROLLERS
from tests.decide.builders import UID, WEB_SLOTS, pod, pods, rs
from tests.workers.turn.turn_script import claimed, plays
from workers.ledger import Ledger
from workers.settling import NAMES_MAX, _named_by, settle

LEFT_ALONE = f"the record of web is to delete {WEB_SLOTS.name(0)}, which is not its own: left alone"


@pytest.mark.parametrize(
    ("look", "then"),
    [
        pytest.param("foreign@20", "ok in 0 ms: answered 0@7", id="a stranger under that name: the one meant is gone"),
        pytest.param("orphan@20", f"fails ({LEFT_ALONE}), retry: drop delete 0", id="nobody's: left alone"),
        pytest.param("another@20", "ok in 0 ms: answered 0@7", id="another pod of ours: the one meant is gone"),
        pytest.param("404", "ok in 0 ms: answered 0@7", id="gone"),
        pytest.param("lost", "retry", id="nothing learned: it stays announced, and nothing is sent"),
        pytest.param("500", "retry", id="an error: it stays announced, and nothing is sent"),
        pytest.param(
            "ours@20",
            "reserve 1 -> all\nsend delete 0@7 -> 200@30\nok in 0 ms: answered 0@7",
            id="ours, though the cache has not come to it",
        ),
    ],
)
def test_a_delete_of_a_pod_that_the_cache_does_not_show_as_ours(look: str, then: str) -> None:
    plays(claimed(rs(3), (), "delete 0@7"), f"read pods 0 -> {look}\n{then}")


def test_a_delete_without_a_version_is_no_announcement_of_ours() -> None:
    plays(
        claimed(rs(1), pods("R"), "delete 0@"),
        f"read pods 0 -> ours@20\nfails ({LEFT_ALONE}), retry: drop delete 0",
    )


def test_only_names_of_the_owner_are_created() -> None:
    claim = claimed(rs(3), (), "create 0")
    assert claim.record is not None
    stranger = "db-0"
    planted = Record(claim.record.owner_uid, (f"pods/{stranger}", *claim.record.pending_creates))
    plays(
        claim._replace(record=planted),
        f"""
        reserve 1     -> all
        send create 0 -> 201@20
        fails (the record of web is to create {stranger}, which is no name of its own: left out), retry: """
        f"drop create {stranger}; drop create 0; need pods 20",
    )


def test_an_entry_that_nobody_announces_is_dropped_and_does_not_keep_the_key_busy() -> None:
    claim = claimed(rs(3), (), "hold 0")
    planted = Record.parse(["owner", UID, "exec pods/a", "pending since_ms=1"])
    plays(
        claim._replace(record=planted),
        "fails (the record of web has an entry that none of ours announces: left out), retry: drop exec ; drop exec a",
    )


def test_an_entry_of_something_that_is_no_pod_is_dropped_by_its_own_name() -> None:
    planted = Record.parse(
        ["owner", UID, "create nodes/n1", "pending since_ms=1", "delete nodes/n2", "pending since_ms=1 uid=u rv=2"]
    )
    assert planted is not None
    ledger = Ledger(claimed(rs(3), (), "hold 0"))
    assert list(settle(rs(3), planted, (), CONTROLLERS["replicaset"], "", ledger)) == [], "nothing is asked or sent"
    assert ledger.changes == [Change.drop("create nodes/n1"), Change.drop("delete nodes/n2")]
    assert ledger.error.endswith("an entry that none of ours announces: left out")


def test_a_name_of_another_owner_or_node_is_none_of_ours() -> None:
    replicas, daemons, owner = CONTROLLERS["replicaset"], CONTROLLERS["daemonset"], rs(3)
    assert _named_by(owner, WEB_SLOTS.name(26**4), None, replicas)
    assert not _named_by(owner, pod("web-aaaaa").name, None, replicas), "a is no letter of the alphabet"
    assert _named_by(owner, daemon_name("web", UID, "n1", 1), "n1", daemons)
    assert not _named_by(owner, daemon_name("web", UID, "n1", 1), "n2", daemons)
    assert not _named_by(owner, daemon_name("web", "another", "n1", 1), "n1", daemons)
    assert not _named_by(owner, daemon_name("web", UID, "n1", NAMES_MAX), "n1", daemons)
