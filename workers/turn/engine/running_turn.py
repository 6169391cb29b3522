"""One turn under way: its steps carried out one after the other, up to where it would have to wait for the API.

A turn is a generator, so a turn that waits stands still and costs nothing; meanwhile the runner goes on with another.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.cluster.listing import ListError
from oarlock.workers.signing.refusals import ObjectRefused
from oarlock.workers.turn.steps import Resume, Step, Turn, TurnRefused
from oarlock.workers.turn.turn_outcome import TurnOutcome

if TYPE_CHECKING:
    from oarlock.workers.turn.engine.turn_engine import TurnEngine


class RunningTurn:
    """``begun_ms``: when, ``deadline_ms``: until when its claim may send. ``engine`` carries out its steps.

    ``waits_for``: what ``advance`` could not go on without; None before the first and after the last.
    """

    __slots__ = ("_engine", "_over", "_step", "_steps", "begun_ms", "claim", "deadline_ms", "outcome", "waits_for")

    def __init__(
        self, claim: Claim, steps: Turn, outcome: TurnOutcome, begun_ms: int, deadline_ms: int, engine: TurnEngine
    ) -> None:
        self.claim, self.outcome, self.begun_ms, self.deadline_ms = claim, outcome, begun_ms, deadline_ms
        self._steps, self._engine, self._over = steps, engine, False
        self._step: Step | None = None
        self.waits_for: Future[Any] | None = None

    @property
    def age_ratios(self) -> Sequence[int]:
        """Of the pods it chose to delete, so far."""
        return self.outcome.age_ratios

    def did(self, failure: str) -> str:
        """What it did so far and why it failed, in a line for people."""
        return self.outcome.note.text(failure)

    @property
    def in_function(self) -> bool:
        """Whether it waits for a function of a user, which may take its time."""
        return self.waits_for is not None and isinstance(self._step, Resume)

    def advance(self) -> Finish | None:
        """Go on until it would have to wait. None: call it again when ``waits_for`` is done.

        Raises TurnFailed (with what to keep), ClaimLost, EpochOver or BrokerUnreachable. Any other exception is a
        failed turn too, to be tried again.
        """
        waited_for, self.waits_for = self.waits_for, None
        try:
            result = None if waited_for is None else self._result(waited_for)
            while True:
                step = self._step = self._steps.send(result)
                result = self._engine.carry_out(self, step)
                if isinstance(result, Future):
                    if not result.done():
                        self.waits_for = result
                        return None
                    result = self._result(result)
        except StopIteration as end:
            finish: Finish = end.value
            return finish
        except ListError as error:
            raise self.outcome.failure(f"live list: {error}") from None
        except ObjectRefused as error:
            raise TurnRefused(str(error), self.outcome.finish(Verdict.RETRY)) from None
        finally:
            if self.waits_for is None:
                self._end()

    def abandon(self) -> None:
        """Go on no more. Requests under way are cut off: what becomes of them stays unknown."""
        waited_for, self.waits_for = self.waits_for, None
        if waited_for is not None:
            waited_for.cancel()
            self._end()

    def _result(self, came: Future[Any]) -> Any:
        result = came.result()
        assert self._step is not None
        self._engine.answered(self, self._step, result)
        return result

    def _end(self) -> None:
        self._steps.close()
        if not self._over:
            self._over = True
            self._engine.ended(self)
