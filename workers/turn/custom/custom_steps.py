"""One turn over an object of a controller of the `steps` style: the user's function runs beside it, and this generator
carries out what the function asks, one request after the other.

While the function computes or waits, the turn waits for it as for an answer of the API: the worker goes on with others.
A turn that ends before its function, for whatever reason, makes each further request of it raise LostClaim.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import orjson

from oarlock.broker.expectations import UNDONE
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import Change, Verdict
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import Outcome, of_change
from oarlock.controllers.entries import StepsController
from oarlock.controllers.objects.whole import Whole, decode_whole, without_noise
from oarlock.controllers.pods.events import NORMAL, WARNING, Event
from oarlock.controllers.requests import ApiError, Asked, Ended, LostClaim
from oarlock.controllers.wanted import UserError, said_by
from oarlock.workers.process.log_line import discreet, line
from oarlock.workers.turn.custom.inputs import versions_of_others, watched_by
from oarlock.workers.turn.custom.rewrites import Rewrites, but_status
from oarlock.workers.turn.custom.user_requests import Answers
from oarlock.workers.turn.steps import Failures, Read, Resume, Send, Steps, Turn, UserRun, Write
from oarlock.workers.turn.turn_outcome import SAID_MAX, TurnOutcome

log = logging.getLogger("oarlock.worker")

QUEUES_OWN_MS = (5, 1_000_000)
"""Back-off of the queue itself: the first wait after a failure, which is doubled each time, and the longest."""
HELD_TOLD_AGAIN_MS = 600_000
"""Until it is told again that an object is held, though nothing will be undone."""
NEVER_MAX = 10_000
"""Objects that a worker remembers as hopeless. Beyond it the oldest are tried once more."""


class NeverAgain:
    """Objects whose function raised Never, what they were then, and why. One worker's: a new one tries once, as the
    code may have been mended since.
    """

    def __init__(self, most: int = NEVER_MAX) -> None:
        self._of: dict[str, tuple[bytes, str]] = {}
        self._most = most

    def reason(self, own: Whole) -> str | None:
        """Why nothing is to be done while the object is what it was, its status aside. None: it is to be tried."""
        known = self._of.get(own.uid)
        if known is None or known[0] == but_status(own):
            return known and known[1]
        del self._of[own.uid]
        return None

    def add(self, own: Whole, reason: str) -> None:
        self._of[own.uid] = (but_status(own), reason)
        if len(self._of) > self._most:
            del self._of[next(iter(self._of))]


class StepsContext(NamedTuple):
    """What the turns of one controller share in a process. ``start``: makes a run of its function over an object, or
    of the one that undoes what that has done.
    """

    start: Callable[[Whole, bool], UserRun]
    never: NeverAgain


def custom_steps(claim: Claim, controller: StepsController, ctx: StepsContext, outcome: TurnOutcome) -> Turn:
    """Run the function over one object.

    Raises TurnFailed for a turn that is to be retried; ClaimLost ends it at once.
    """
    if claim.owner is None:
        return outcome.finish(Verdict.GONE)
    if claim.min_rv:
        return outcome.finish()  # the cache lacks writes of ours; when it has passed them, the key is queued
    own = decode_whole(claim.owner.blob)
    undo, held = None, controller.finalizer in own.finalizers
    if own.deleting_ms:
        undo = controller.undo
        if not held or undo is None or _is_undone(claim):
            return outcome.finish()  # nothing outside is to be undone; its children go with it
    elif controller.finalizer and not held:
        # Before the first run: else a deletion in its midst would leave behind what it has done outside.
        named = (*own.finalizers, controller.finalizer)
        yield from _change_finalizers(own, claim.owner.rv, named, controller, outcome)
        return outcome.finish()
    given = own
    if undo is not None and controller.undo_reads:
        live = yield from _live(own, controller, outcome)
        if live is None:
            return outcome.finish()
        given = live
    reason = ctx.never.reason(given)
    if reason is None:
        yield from _carry_out(claim, own, given, undo is not None, controller, ctx, outcome)
    elif undo is not None:
        _tell_never(own, reason, controller, outcome)
    return outcome.finish()


def _carry_out(
    claim: Claim,
    own: Whole,
    given: Whole,
    undo: bool,
    controller: StepsController,
    ctx: StepsContext,
    outcome: TurnOutcome,
) -> Steps[None]:
    """Run the function, or the one that undoes, and heed how it ends. ``given``: what it gets of ``own``."""
    assert claim.owner is not None
    watched = (yield from watched_by(claim, controller)) if claim.expectations is not None else []
    rewrites = Rewrites(claim, own, versions_of_others(claim, watched))
    if rewrites.hold(outcome):
        return
    if own.fault:
        outcome.events.append(Event(WARNING, "IndexFailed", own.fault))
    answers = Answers(claim, given, controller, outcome)
    error = yield from _run(ctx.start(given, undo), answers)
    after = answers.own_rv if answers.status_written else claim.owner.rv
    later_ms = error.after_ms if isinstance(error, UserError) else None
    rewrites.one(claim.owner.rv, after, outcome, controller.every_ms, later_ms)
    if error is not None:
        yield from _heed(error, given, controller, ctx, outcome)
    elif own.deleting_ms:
        yield from _let_go(own, answers.own_rv, controller, outcome)
    elif controller.every_ms is not None:
        outcome.due_in(controller.every_ms)  # also in the first turn after a lost Redis, which looks at everything


def _run(run: UserRun, answers: Answers) -> Steps[BaseException | None]:
    """Carry out what the function asks until it ends. Returns what it raised."""
    answer = None
    try:
        while True:
            asked: Asked = yield Resume(run, answer)
            if isinstance(asked, Ended):
                return asked.error
            answer = yield from answers.answer(asked)
    finally:
        run.abandon()


def _is_undone(claim: Claim) -> bool:
    """Whether a turn has let the object go: nobody can have given it the finalizer again."""
    noted, own = claim.expectations, claim.owner
    return noted is not None and own is not None and noted.undone == own.uid


def _let_go(own: Whole, rv: str, controller: StepsController, outcome: TurnOutcome) -> Steps[None]:
    """Note it, too: the answer may have the version before it, so the cache may show the finalizer to the next turn."""
    rest = tuple(each for each in own.finalizers if each != controller.finalizer)
    done = yield from _change_finalizers(own, rv, rest, controller, outcome)
    if done:
        outcome.changes.append(Change.set(UNDONE, own.uid))


def _live(own: Whole, controller: StepsController, outcome: TurnOutcome) -> Steps[Whole | None]:
    """The object with all its fields, whatever its type names of them. None: it has gone."""
    answer: Answer
    (answer,) = yield Read(controller.resource, own.namespace, (own.name,))
    if answer.ok and answer.uid == own.uid:
        return msgspec.structs.replace(own, body=orjson.dumps(without_noise(answer.body, own.key)))
    if answer.ok or (answer.code == 404 and answer.status is not None):
        return None
    outcome.heed_throttling(answer)
    raise outcome.failure(f"{own.key} could not be read to be undone: {discreet(answer.message)}")


def _change_finalizers(
    own: Whole, rv: str, finalizers: tuple[str, ...], controller: StepsController, outcome: TurnOutcome
) -> Steps[bool]:
    """Only in the version that was read: others change finalizers too. Returns whether it is done."""
    meta = {"uid": own.uid, "resourceVersion": rv, "finalizers": finalizers}
    body = orjson.dumps({"metadata": meta})
    answer: Answer
    (answer,) = yield Send((Write("merge", controller.resource, own.namespace, own.name, body),))
    match of_change(answer):
        case Outcome.DONE:
            outcome.cache_must_pass(controller.resource, answer.resource_version)
            return True
        case Outcome.GONE:
            pass
        case Outcome.CONFLICT | Outcome.NOT_SENT | Outcome.TOO_LATE | Outcome.THROTTLED:
            outcome.heed_throttling(answer)
            outcome.retry = True
        case _:
            raise outcome.failure(f"finalizers of {own.key}: {discreet(answer.message)}")
    return False


def _heed(
    error: BaseException, own: Whole, controller: StepsController, ctx: StepsContext, outcome: TurnOutcome
) -> Steps[None]:
    """The function raised something: say so, and look again when it is of use."""
    name, said = type(error).__name__, discreet(said_by(error), SAID_MAX)
    if isinstance(error, UserError) and not error.never and error.after_ms is not None:
        outcome.due_in(error.after_ms)
        if said:
            outcome.events.append(Event(NORMAL, "Waiting", said))
        return
    if isinstance(error, UserError) and error.never:
        ctx.never.add(own, said)
        _tell_never(own, said, controller, outcome)
        return
    if isinstance(error, LostClaim) or (isinstance(error, ApiError) and error.stale):
        outcome.retry = True  # nothing is wrong: compute it again on what is there now
        return
    facts = {"controller": controller.name, "key": own.key, "error": f"{name}: {said}"}
    if isinstance(error, ApiError):
        log.warning(line("refused", **facts))
    else:
        log.error(line("function_failed", **facts), exc_info=(type(error), error, error.__traceback__))
    outcome.events.append(Event(WARNING, "Failed", f"{name}: {said}"))
    if (controller.retry_base_ms, controller.retry_max_ms) != QUEUES_OWN_MS:
        failures: int = yield Failures()
        wait_ms = controller.retry_base_ms * 2 ** min(failures, 40)
        outcome.least_wait_ms = max(outcome.least_wait_ms, min(wait_ms, controller.retry_max_ms))
        outcome.due_in(controller.retry_max_ms)
    raise outcome.failure(f"{name}: {said}")


def _tell_never(own: Whole, reason: str, controller: StepsController, outcome: TurnOutcome) -> None:
    """Nothing is done before the object changes. One that is held by it is told of again: an event lasts an hour."""
    outcome.events.append(Event(WARNING, "Failed", reason))
    log.warning(line("never", controller=controller.name, key=own.key, reason=reason))
    if own.deleting_ms:
        outcome.due_in(HELD_TOLD_AGAIN_MS)
