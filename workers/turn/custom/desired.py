"""One turn of a controller that says what is wanted, from top to bottom: read, ask, compare, write, report.

Nothing but deletes is announced. A child's name is the user's, so a create that lands late meets the name; an apply
carries the digest of its wish, so a late one is seen and applied over. Every update, delete and status carries the UID
and resourceVersion that were compared.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Verdict
from oarlock.controllers.entries import DesiredController, Found
from oarlock.controllers.objects.whole import Whole, decode_whole
from oarlock.controllers.pods.events import NORMAL, WARNING, Event
from oarlock.controllers.wanted import Live, UserError, Wanted, changes, said_by
from oarlock.workers.process.exit_code import ForcedStop
from oarlock.workers.process.fork import ending_what_is_forked
from oarlock.workers.process.log_line import discreet, line
from oarlock.workers.tracing.tracer import current_turn
from oarlock.workers.turn.custom import child_writes
from oarlock.workers.turn.custom.inputs import versions_of_others, watched_by
from oarlock.workers.turn.custom.memory import Memory, Versions
from oarlock.workers.turn.custom.open_deletes import OpenDeletes
from oarlock.workers.turn.custom.rewrites import Rewrites
from oarlock.workers.turn.steps import Announce, Steps, Turn
from oarlock.workers.turn.turn_outcome import TurnOutcome

log = logging.getLogger("oarlock.worker")


class DesiredContext(msgspec.Struct, frozen=True):
    """What the turns of one controller share in a process."""

    controller: DesiredController
    memory: Memory

    @classmethod
    def of(cls, controller: DesiredController) -> DesiredContext:
        return cls(controller, Memory())


def desired(claim: Claim, ctx: DesiredContext, outcome: TurnOutcome) -> Turn:
    """Bring the children of one object to what its controller wants.

    Raises TurnFailed for a turn that is to be retried; ClaimLost from a step ends it at once.
    """
    controller, memory = ctx.controller, ctx.memory
    if claim.owner is None:
        memory.forget(claim.key)
        return outcome.finish(Verdict.GONE)
    if controller.every_ms is not None:
        outcome.due_in(controller.every_ms)
    if claim.min_rv:
        return outcome.finish()  # the cache lacks writes of ours; when it has passed them, the key is queued
    watched: list[tuple[str, Cached]] = []
    if controller.watched:
        watched = yield from watched_by(claim, controller)
    others = versions_of_others(claim, watched)
    versions = (claim.owner.uid, claim.owner.rv, *others)
    if claim.expectations is None and not claim.unsettled and memory.at_rest(claim.key, versions):
        return outcome.finish()
    owner = decode_whole(claim.owner.blob)
    if claim.expectations is not None and claim.expectations.owner_uid not in ("", owner.uid):
        outcome.again_in(0)  # those of a predecessor of the same name
        return outcome.finish(Verdict.GONE)
    if owner.deleting_ms:
        OpenDeletes(claim, (), outcome)
        return outcome.finish()  # its children go by garbage collection
    rewrites = Rewrites(claim, owner, others)
    if not claim.unsettled and rewrites.hold(outcome):
        return outcome.finish()
    if owner.fault:
        outcome.events.append(Event(WARNING, "IndexFailed", owner.fault))
    live = _live(claim, controller)
    deletes = OpenDeletes(claim, live, outcome)
    wanted = _wanted(owner, [(each.resource, each.obj) for each in live], watched, controller, outcome)
    if wanted is None:
        return outcome.finish()
    yield from _carry_out(owner, wanted, claim, live, deletes, versions, rewrites, ctx, outcome)
    if outcome.error:
        _pace(controller, outcome)
        raise outcome.failure(outcome.error)
    return outcome.finish()


def _carry_out(
    owner: Whole,
    wanted: Wanted,
    claim: Claim,
    live: list[Live],
    deletes: OpenDeletes,
    versions: Versions,
    rewrites: Rewrites,
    ctx: DesiredContext,
    outcome: TurnOutcome,
) -> Steps[None]:
    controller, memory = ctx.controller, ctx.memory
    assert claim.owner is not None
    outcome.events += memory.news(owner.uid, wanted.events)
    if wanted.again_ms is not None:
        outcome.due_in(wanted.again_ms)
    if deletes.lost:
        entries = deletes.assume(live)
        if entries:
            yield Announce(owner.uid, entries)
            outcome.announced(entries)
    plan = changes(
        owner.uid, wanted, live, memory.settled, deletes.uids, controller=controller.name, rivals=controller.rivals
    )
    child_writes.tell_taken(plan, outcome)
    if not plan.none:
        yield from child_writes.write(owner, plan, controller, memory, deletes, outcome)
    patched = yield from child_writes.write_status(owner, wanted, claim.owner.rv, controller, memory, rewrites, outcome)
    clocked = wanted.again_ms is not None or controller.every_ms is not None  # it may say something else by now
    if plan.none and not patched and not outcome.retry and not clocked:
        memory.rests(claim.key, versions)


def _wanted(
    owner: Whole, owned: Found, watched: list[tuple[str, Cached]], controller: DesiredController, outcome: TurnOutcome
) -> Wanted | None:
    """What the user's function wants; None if nothing: it waits, or is never to be asked again about this state."""
    try:
        with current_turn.get().function(), ending_what_is_forked():
            return controller.want(owner, owned, [(resource, decode_whole(each.blob)) for resource, each in watched])
    except UserError as error:
        _heed(error, error.__cause__, owner, controller, outcome)
    except (Exception, ForcedStop):
        raise  # what the function raised has come as a UserError
    except BaseException as error:  # SystemExit and CancelledError: they would end the worker, and no key be blamed
        named = UserError(f"{controller.name}: {type(error).__name__}: {said_by(error)}")
        _heed(named, error, owner, controller, outcome)
    return None


def _heed(
    error: UserError,
    cause: BaseException | None,
    owner: Whole,
    controller: DesiredController,
    outcome: TurnOutcome,
) -> None:
    """The function raised something: say so. Raises TurnFailed where it is to be tried again."""
    if error.after_ms is not None:
        outcome.due_in(error.after_ms)
        if error.message:
            outcome.events.append(Event(NORMAL, "Waiting", error.message))
        return
    outcome.events.append(Event(WARNING, "ReconcileFailed", error.message))
    if error.never:
        log.warning(line("never", controller=controller.name, key=owner.key, reason=error.message))
        return
    log.error(
        line("function_failed", controller=controller.name, key=owner.key, error=discreet(error.message)),
        exc_info=cause,
    )
    _pace(controller, outcome)
    raise outcome.failure(error.message) from None


def _pace(controller: DesiredController, outcome: TurnOutcome) -> None:
    """When a failed turn is tried again."""
    outcome.least_wait_ms = max(outcome.least_wait_ms, controller.retry_base_ms)
    outcome.due_in(max(controller.retry_max_ms, outcome.least_wait_ms))


def _children(claim: Claim, controller: DesiredController) -> Iterator[tuple[str, Cached]]:
    for at, resource in enumerate(controller.owned):
        for each in claim.children if at == 0 else claim.others.get(resource, ()):
            yield resource, each


def _live(claim: Claim, controller: DesiredController) -> list[Live]:
    return [Live(resource, each.rv, decode_whole(each.blob)) for resource, each in _children(claim, controller)]
