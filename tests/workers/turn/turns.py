"""Turns in tests: an API that has answered already, and a turn taken to its end."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.turns import Finish
from oarlock.workers.turn.engine.engine import Engine

T = TypeVar("T")


def arrived(answer: T) -> Future[T]:
    """What was asked for, and is there."""
    future: Future[T] = Future()
    future.set_result(answer)
    return future


def through(engine: Engine, batch: Batch, claim: Claim) -> Finish:
    """One turn to its end, beside no other. Raises what it raises."""
    turn = engine.start(batch, claim)
    while (finish := turn.advance()) is None:
        assert turn.waits_for is not None
        turn.waits_for.exception(timeout=10)
    return finish
