"""A pause: no turn begins while there is one."""

from __future__ import annotations

from oarlock.broker.values.claims import Batch, Idle
from tests.broker.broker_cases import QUEUE, Case, claim_reply, opened


def test_while_there_is_a_hold_no_turn_begins(case: Case) -> None:
    opened(case, "ns/web")
    case.worker.add(QUEUE, ["ns/web"])
    assert case.ingestor.pause("upstream") == "HELD"
    assert case.ingestor.pause("upstream again") == "HELD"
    assert claim_reply(case) is Idle.WAIT
    assert case.ingestor.open([]) == ""
    assert claim_reply(case) is Idle.WAIT
    assert case.worker.pause("") == "OPEN"
    assert isinstance(claim_reply(case), Batch)


def test_a_hold_of_a_young_epoch_outlives_its_drain(case: Case) -> None:
    assert case.ingestor.pause("upstream") == "DRAIN"
    assert case.ingestor.open([]) == ""
    assert case.state()["phase"] == "HELD"
    case.bootstrap()
    assert case.ingestor.open([]) == ""
    assert case.state()["phase"] == "OPEN", "a pause is of its epoch"
