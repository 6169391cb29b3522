"""What a key remembers, in sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oarlock.broker.looks.history import PastTurn, Queued, Triggers
from oarlock.broker.looks.views import KeyView, LockView
from oarlock.cli.explain.history_sentences import (
    did_text,
    queued_sentences,
    trigger_text,
    triggers_text,
    turn_sentences,
)

IDLE = KeyView("replicaset", "ns/web", "idle", None, None, None, 0, 0, "", None, None, now_ms=10_000)
ASKED = Queued(7_000, Triggers(1, "asked", "asked"))
TURN = PastTurn("ok", "create pods x3", 1, 8_000, 5, 40, "w-1", Triggers(1, "asked", "asked"))


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("set pods/ns/web-1", "pods/ns/web-1 was written"),
        ("del pods/ns/web-1", "pods/ns/web-1 was deleted"),
        (
            "observed replicasets/ns/web",
            "replicasets/ns/web was written, its controller has observed its generation",
        ),
        ("added pods/ns/web-1", "pods/ns/web-1 was created"),
        ("status replicasets/ns/web", "the status of replicasets/ns/web was written"),
        ("list pods", "pods were listed anew"),
        ("read pods", "the cache of pods showed a write of its own"),
        ("due", "its time had come"),
        ("parked", "its time in the parked set was over"),
        ("resumed", "its pause ended"),
        ("lost w-1", "worker w-1 was lost in its turn"),
        ("asked", "somebody asked for it"),
        ("anew", "its operator was started"),
        ("orphans", "an ingestor found objects that it may adopt"),
        ("node-update node-1", "a turn of node-update node-1 woke it"),
    ],
)
def test_a_trigger(trigger: str, text: str) -> None:
    assert trigger_text(trigger) == text


@pytest.mark.parametrize(
    ("triggers", "text"),
    [
        (Triggers(1, "due", "due"), "its time had come"),
        (Triggers(2, "due", "asked"), "its time had come; 1 more event, the last: somebody asked for it"),
        (Triggers(9, "due", "due"), "its time had come; 8 more events"),
        (Triggers(9, "due"), "its time had come; 8 more events"),
        (Triggers(0, "unknown", "unknown"), "nothing says why"),
    ],
)
def test_triggers(triggers: Triggers, text: str) -> None:
    assert triggers_text(triggers) == text


LOCK = LockView("replicaset", "ns/web", "w-1", "n", 1_500, 3_000, ASKED)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        pytest.param(IDLE, [], id="idle"),
        pytest.param(
            replace(IDLE, state="queued", why=ASKED), ["What queued it, 3.0s ago: somebody asked for it."], id="queued"
        ),
        pytest.param(
            replace(IDLE, state="running", lock=LOCK), ["It was queued because somebody asked for it."], id="running"
        ),
        pytest.param(
            replace(IDLE, state="running+", lock=LOCK, why=Queued(9_500, Triggers(1, "due", "due"))),
            [
                "It was queued because somebody asked for it.",
                "What asks for the next turn, 500ms ago: its time had come.",
            ],
            id="queued again",
        ),
    ],
)
def test_why_it_is_queued(key: KeyView, told: list[str]) -> None:
    assert queued_sentences(key) == told


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        ([], ""),
        ([TURN], "Its last turn ended well 2.0s ago; it created pods x3."),
        ([TURN, TURN._replace(did="-")], "Its last turn ended well 2.0s ago; it created pods x3."),
        ([TURN._replace(did="-")], "Its last turn ended well 2.0s ago; it did nothing."),
        (
            [TURN._replace(verdict="retry", did="create pods x3: 403 quota", turns=4)],
            "Its last turn failed 2.0s ago, as 4 in a row; it could not create pods x3: 403 quota.",
        ),
        ([TURN._replace(verdict="lost", did="-")], "Its last turn was lost with its worker 2.0s ago."),
        ([TURN._replace(verdict="gone", did="-")], "Its last turn found the object gone 2.0s ago."),
    ],
)
def test_its_last_turn(turns: list[PastTurn], told: str) -> None:
    expected = [f"{told} `oarlock history` has more."] if told else []
    assert turn_sentences(replace(IDLE, turns=turns)) == expected


@pytest.mark.parametrize(
    ("did", "text"),
    [
        ("-", "did nothing"),
        ("status", "wrote its status"),
        ("quiet", "did nothing, or wrote its status"),
        ("create pods x3, delete pods, status", "created pods x3, deleted pods, wrote its status"),
        ("patch replicasets x2, wake daemonset", "changed replicasets x2, woke daemonset"),
        (
            "create pods, create pods x2: 403 exceeded quota: few, requested: pods=1, status: the same",
            "created pods, could not create pods x2: 403 exceeded quota: few, requested: pods=1,"
            " could not write its status: the same",
        ),
        ("patch pods: 429 too many requests", "could not change pods: 429 too many requests"),
        ("failed: no view of the pods", "failed: no view of the pods"),
        ("its process ended by SIGSEGV", "its process ended by SIGSEGV"),
    ],
)
def test_what_a_turn_did(did: str, text: str) -> None:
    assert did_text(did) == text
