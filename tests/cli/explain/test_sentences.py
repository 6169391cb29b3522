"""Explanations: each circumstance has its sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oarlock.broker.looks.views import KeyView, LockView, ResourceView
from oarlock.cli.explain.sentences import STALE_MS, Fleet, Owner, explain
from oarlock.cluster.watch import IDLE_S, LIFE_S
from oarlock.controllers.objects.model import Condition, ReplicaSet, ReplicaSetStatus

KEY = KeyView("replicaset", "ns/web", "idle", None, None, None, 0, 0, "", None, None)
FLEET = Fleet("OPEN", True, 2, resources=(ResourceView("pods", "90", 100, "1", 5),))
STATUS = ReplicaSetStatus(3, 3, 3, 3, 0, 1)
WEB = ReplicaSet("ns", "web", "u", 1, 3, None, b"", {}, status=STATUS)
OWNER = Owner(WEB, "80", 3, 0)
LOCK = LockView("replicaset", "ns/web", "w-1", "n", 1_500, 3_000)


@pytest.mark.parametrize(
    ("key", "fleet", "owner", "told"),
    [
        pytest.param({}, {}, {}, "All is as it should be: there is nothing to do.", id="at rest"),
        pytest.param({}, {}, {"active": 2}, "Nothing is planned although something differs", id="idle and wrong"),
        pytest.param({}, {"workers": 0}, {}, "No worker is registered", id="no workers"),
        pytest.param({}, {"suspended": True}, {}, "RQ is suspended: workers wait until `rq resume`.", id="suspended"),
        pytest.param({}, {"phase": "DRAIN"}, {}, "The fleet is in phase DRAIN", id="drain"),
        pytest.param(
            {}, {"phase": "HELD", "paused": "k created pod x"}, {}, "at work on the same kinds: k created", id="paused"
        ),
        pytest.param({}, {"intact": False}, {}, "Redis lost or changed its data", id="lost"),
        pytest.param(
            {},
            {"resources": (ResourceView("pods", "9", 90_000, "1", 5),)},
            {},
            "last confirmed 1m30s ago: no ingestor",
            id="deaf",
        ),
        pytest.param({"state": "queued"}, {"ahead": 1}, {}, "It is queued: 1 key is ahead of it.", id="second"),
        pytest.param({"state": "queued"}, {"ahead": 7}, {}, "It is queued: 7 keys are ahead of it.", id="queued"),
        pytest.param(
            {"state": "queued"},
            {"rate_per_s": 0.1, "rate_wait_ms": 12_000},
            {},
            "waits for the rate of its controller, rate_per_s=0.1 in the whole fleet: its turn begins in 12.0s",
            id="limited",
        ),
        pytest.param(
            {"state": "running", "lock": LOCK},
            {},
            {},
            "w-1 is working on it since 1.5s, for another 3.0s unless renewed.",
            id="paused",
        ),
        pytest.param(
            {"state": "running", "lock": replace(LOCK, remaining_ms=-2_000)},
            {},
            {},
            "2.0s longer than its lease",
            id="overdue",
        ),
        pytest.param({"state": "running+", "lock": LOCK}, {}, {}, "Something changed meanwhile", id="dirty"),
        pytest.param({"state": "parked", "parked_in_ms": 4_000}, {}, {}, "tried again, alone, in 4.0s", id="parked"),
        pytest.param({"delayed_in_ms": 90_000}, {}, {}, "A delayed turn comes in 1m30s.", id="delayed"),
        pytest.param({"delayed_in_ms": -5}, {}, {}, "A delayed turn is due now.", id="due"),
        pytest.param({"min_rv": "pods=100"}, {}, {}, "the cache of pods is at revision 90, needed is 100.", id="needs"),
        pytest.param({"unsettled_age_ms": 5}, {}, {}, "their expectations lost", id="expectations lost"),
        pytest.param({"failures": 6}, {}, {}, "Its last 6 turns failed", id="failures"),
        pytest.param({"crashes": 2}, {}, {}, "It killed its last 2 workers.", id="crashes"),
        pytest.param({"suspect": True}, {}, {}, "It is suspect: its lease ended", id="suspect"),
        pytest.param({}, {}, {"terminating": 2}, "and 2 terminating", id="leaving"),
    ],
)
def test_sentences(key: dict[str, Any], fleet: dict[str, Any], owner: dict[str, Any], told: str) -> None:
    assert told in " ".join(explain(replace(KEY, **key), replace(OWNER, **owner), replace(FLEET, **fleet)))


def test_what_a_quiet_resource_needs_to_be_confirmed_is_not_called_deaf() -> None:
    assert LIFE_S[1] < IDLE_S == STALE_MS / 1000
    quiet = ResourceView("pods", "9", round(LIFE_S[1] * 1000) + 1_000, "1", 5)
    assert "confirmed" not in " ".join(explain(KEY, OWNER, replace(FLEET, resources=(quiet,))))


def test_needs_that_the_cache_has_passed_are_not_told() -> None:
    assert "It waits" not in " ".join(explain(replace(KEY, min_rv="pods=89"), OWNER, FLEET))
    assert "It waits" in " ".join(explain(replace(KEY, min_rv="pods=100"), OWNER, FLEET)), "compared by length first"


def test_what_others_have_said_speaks_to_no_terminal() -> None:
    failure = Condition("ReplicaFailure", "True", "FailedCreate", "no\x1b[2J\nmore\x9b")
    status = ReplicaSetStatus(0, 0, 0, 0, 0, 1, (failure,))
    owner = replace(OWNER, obj=ReplicaSet("ns", "web", "u", 1, 3, None, b"", {}, status=status))
    said = explain(replace(KEY, key="ns/\x07"), owner, replace(FLEET, phase="HELD", paused="\x1b]0;x\x07"))
    assert "no\\u001b[2J\\u000amore\\u009b." in " ".join(said)
    assert "\\u001b]0;x\\u0007" in " ".join(said)
    assert all(each.isprintable() for each in said)


def test_no_object() -> None:
    assert explain(KEY, None, FLEET)[0] == (
        "No ReplicaSet ns/web is in the cache: it does not exist, or no ingestor has seen it yet."
    )


def test_a_failure_that_the_status_tells() -> None:
    failure = Condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota.")
    status = ReplicaSetStatus(0, 0, 0, 0, 0, 1, (failure,))
    failing = ReplicaSet("ns", "web", "u", 1, 3, None, b"", {}, status=status)
    assert "Its last writes failed: FailedCreate: exceeded quota." in explain(KEY, Owner(failing, "80", 0, 0), FLEET)
