"""The status of an owner: written at the end of a turn, put off where the next turn writes it anyway, for a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oarlock.broker.values.claims import Claim
from oarlock.cluster.answer import Answer
from oarlock.cluster.outcome import Outcome, of_change
from oarlock.controllers.entries import PodController
from oarlock.controllers.plan import Plan
from oarlock.controllers.replicaset.status import Terminating, is_kept, is_to_be_sized, says_nothing_else
from oarlock.workers.turn.steps import Send, Steps, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome

PUT_OFF_MS = 1_000
QUEUED_MS = 300
"""The status of an owner with very many pods to come waits no more once its key was queued for so long."""
OWNERS_MAX = 10_000


class LateStatus:
    """Owners whose status this process has put off, by UID, and since when.

    A turn that created or deleted pods is followed by another turn, because each of them produces an event. So the
    status of the first turn is out of date before it is written. So is that of a turn before the cache has read all
    those pods, and the next creates would have to wait until it is read itself. Upstream writes both all the same.
    Under a limit of requests an owner has a turn for every handful of pods, and such a status takes the place of a pod.
    The first turn after a second puts it off no more: users see it grow, and an owner whose pods go as fast as they
    come has one too.
    """

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def put_off(self, uid: str, now_ms: int) -> bool:
        """Whether the status of this owner may wait once more."""
        if len(self._since_ms) >= OWNERS_MAX:
            self._since_ms.clear()
        if 0 <= now_ms - self._since_ms.setdefault(uid, now_ms) < PUT_OFF_MS:
            return True
        self.forget(uid)
        return False

    def is_overdue(self, uid: str, now_ms: int) -> bool:
        """Whether the status of this owner was put off, and may not wait any more."""
        since_ms = self._since_ms.get(uid)
        return since_ms is not None and not 0 <= now_ms - since_ms < PUT_OFF_MS

    def forget(self, uid: str) -> None:
        """The status of this owner is written, or says what it should."""
        self._since_ms.pop(uid, None)


class KeptCount:
    """Whether the API server keeps status.terminatingReplicas, learned from its answers to statuses; the last counts.

    Until there is an answer the count is written. It is in every status that is written, also to a server that drops
    it, so the next status finds out a server that was upgraded. While the count is dropped, only a status that would
    say nothing else is left out.
    """

    def __init__(self, dropped: bool = False) -> None:
        self._dropped = dropped

    def in_vain(self, old: Terminating, new: Terminating) -> bool:
        """Whether to write ``new`` over ``old`` would change nothing."""
        return self._dropped and says_nothing_else(old, new)

    def answered(self, old: Terminating, new: Terminating, answer: Answer) -> None:
        """``new`` was written over ``old``."""
        kept = is_kept(old, new, answer.body)
        if kept is not None:
            self._dropped = not kept


class Told(NamedTuple):
    """A status that was sent before the creates of its turn. ``rv``: of the owner after it; "": it was not written."""

    rv: str
    status: Any


@dataclass(frozen=True, slots=True)
class StatusWriter:
    """Writes the statuses of one kind, in one process. ``reports_terminating``: terminatingReplicas is among them."""

    reports_terminating: bool
    wall_ms: Callable[[], int]
    late: LateStatus = field(default_factory=LateStatus)
    kept: KeptCount = field(default_factory=KeptCount)

    def write(
        self,
        owner: Any,
        plan: Plan,
        claim: Claim,
        controller: PodController,
        outcome: TurnOutcome,
        *,
        told: Told | None = None,
    ) -> Steps[None]:
        """Write the status if it says anything new. Raises TurnFailed where that fails for certain.

        A turn that did all it wanted, and is sure to be followed by another, leaves it to that one for a while. So does
        one that has ``told`` it before its creates, unless these failed.
        """
        if plan.invalid:
            return  # nothing was done, and no time will change that
        assert claim.owner is not None
        now_ms = self.wall_ms()
        new = self._news(owner, plan, controller, outcome, now_ms)
        followed = outcome.followed or "pods=" in claim.min_rv  # the cache's passing of that wakes the key
        to_tell = new is not None and (told is None or (told.rv != "" and new != told.status))
        may_wait = (followed or is_to_be_sized(owner)) and not outcome.retry
        late = to_tell and may_wait and self.late.put_off(owner.uid, now_ms)
        if not late:
            self.late.forget(owner.uid)
        elif not followed:
            outcome.due_in(PUT_OFF_MS)  # if it is to have no pods, no write follows
        if to_tell and not late and f"{controller.resource}=" not in claim.min_rv:
            yield from self._send(owner, new, told.rv if told else claim.owner.rv, controller, outcome)
        if controller.look_again_ms is not None:
            again_ms = controller.look_again_ms(owner, plan.claimed, new or owner.status, now_ms, self.wall_ms())
            if again_ms is not None:
                outcome.due_in(again_ms)

    def write_overdue(
        self, owner: Any, plan: Plan, claim: Claim, controller: PodController, waited_ms: int, outcome: TurnOutcome
    ) -> Steps[Told | None]:
        """Write a status that may not wait any more before the turn creates its pods: some hundreds take a second, by
        which it would be older. Not while the owner has conditions: the creates may end them. None: nothing was sent,
        or it was refused in a way that is for ``write`` to tell.

        ``waited_ms``: how long the key was queued. Where there is so much to do, the owner's last turn need not have
        been this process's.
        """
        assert claim.owner is not None
        now_ms, conditions = self.wall_ms(), getattr(owner.status, "conditions", None)
        waited = waited_ms >= QUEUED_MS and len(plan.create) >= controller.flavour.burst
        if not (waited or self.late.is_overdue(owner.uid, now_ms)) or conditions or outcome.standing:
            return None
        new = self._news(owner, plan, controller, outcome, now_ms)
        if new is None or f"{controller.resource}=" in claim.min_rv:
            return None
        answer = yield from self._sent(owner, new, claim.owner.rv, controller, outcome)
        match of_change(answer):
            case Outcome.DONE:
                return Told(answer.resource_version, new)
            case Outcome.GONE | Outcome.CONFLICT | Outcome.NOT_SENT | Outcome.TOO_LATE | Outcome.THROTTLED:
                outcome.heed_throttling(answer)
                outcome.retry = True
                return Told("", new)
            case _:
                return None

    def _news(self, owner: Any, plan: Plan, controller: PodController, outcome: TurnOutcome, now_ms: int) -> Any:
        """The status to write; None if the server's says all of it."""
        report = self.reports_terminating
        new = controller.status(owner, plan, outcome.standing, now_ms, report, outcome.attempted)
        return None if new is not None and report and self.kept.in_vain(owner.status, new) else new

    def _sent(self, owner: Any, new: Any, rv: str, controller: PodController, outcome: TurnOutcome) -> Steps[Answer]:
        """With the resourceVersion that the status was computed from, or that our own write made of it."""
        body = controller.status_patch(owner, new, rv)
        answer: Answer
        (answer,) = yield Send((Write("status", controller.resource, owner.namespace, owner.name, body),))
        if of_change(answer) is Outcome.DONE:
            outcome.cache_must_pass(controller.resource, answer.resource_version)
            if self.reports_terminating:
                self.kept.answered(owner.status, new, answer)
        return answer

    def _send(self, owner: Any, new: Any, rv: str, controller: PodController, outcome: TurnOutcome) -> Steps[None]:
        answer = yield from self._sent(owner, new, rv, controller, outcome)
        match of_change(answer):
            case Outcome.DONE:
                pass
            case Outcome.GONE:
                pass  # the event of the owner's end wakes the key
            case Outcome.CONFLICT | Outcome.NOT_SENT | Outcome.TOO_LATE | Outcome.THROTTLED:
                outcome.heed_throttling(answer)
                outcome.retry = True  # the owner has changed, or time is up: compute it again
            case _:
                raise outcome.failure(outcome.error or f"status of {owner.key}: {answer.message}")
