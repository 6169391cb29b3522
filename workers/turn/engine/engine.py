"""The engine of a fleet that works: it announces in Redis what turns are about to write, and sends it to the API."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from oarlock.broker.protocol import Broker
from oarlock.broker.values.turns import Entry, NameTaken
from oarlock.cluster.answer import NO_ANSWER, NOT_SENT, Answer
from oarlock.controllers.registry import CONTROLLERS, WATCHED
from oarlock.workers.budget.limiter import current_lane
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.api import KubeApi
from oarlock.workers.turn.engine.running_turn import RunningTurn
from oarlock.workers.turn.engine.turn_engine import TurnEngine
from oarlock.workers.turn.engine.write_window import WriteWindow
from oarlock.workers.turn.steps import (
    Announce,
    Grant,
    Reserve,
    Send,
    Step,
)

WINDOW = 4
"""Bulk writes that turns have under way together, over those on the wire: 256, the most that one turn has."""


class Engine(TurnEngine):
    """One worker's, as every TurnEngine."""

    _api: KubeApi

    def __init__(
        self,
        broker: Broker,
        api: KubeApi,
        settings: Settings,
        clock: Clock,
        queues: Sequence[str] | None = None,
    ) -> None:
        super().__init__(broker, api, settings, clock, queues)
        self._window = self._new_window()
        self._promised: dict[RunningTurn, int] = {}
        """Under a fleet's API budget: how many writes a turn may announce and has not sent."""

    def _act(self, running: RunningTurn, step: Announce | Reserve | Send) -> Any:
        match step:
            case Announce():
                return self._announce(running, step.owner_uid, step.entries)
            case Reserve():
                return self._reserve(running, step)
            case Send():
                if step.prepaid and self._promised:
                    self._redeem(running, len(step.writes))
                if running.deadline_ms - self._clock.mono_ms() < self._settings.lease_ms // 2:
                    self._announce(running, "", ())  # still ours? then the lease starts anew
                if not self._api.is_proven:
                    owner, resource = _owner_of(running)
                    return self._api.send_first(owner, resource, step.writes, running.deadline_ms, step.prepaid)
                return self._api.send(step.writes, running.deadline_ms, step.prepaid)

    def may_go_on(self) -> bool:
        """While no other turn writes: else these go on while it waits for the cache, and its owner's status would wait
        for longer.
        """
        return self._window.is_idle and not self._promised

    def answered(self, running: RunningTurn, step: Step, result: Any) -> None:
        """Answers to writes show whether the server can be reached."""
        if isinstance(step, Reserve) and self._settings.budget is not None:
            self._promised[running] = result.granted
        if isinstance(step, Send):
            self._window.leave(running)
            for write, answer in zip(step.writes, result, strict=True):
                running.outcome.note.wrote(write, answer)
                failed = answer.code in (NO_ANSWER, NOT_SENT) or _of_a_gateway(answer)
                self._transport_errors = self._transport_errors + 1 if failed else 0

    def ended(self, running: RunningTurn) -> None:
        """Its events are sent, even if it failed."""
        self._window.leave(running)
        if self._promised:
            current_lane.set(running.claim.queue)
            self._redeem(running)
        claim, events = running.claim, running.outcome.events
        if events and claim.owner is not None:
            self._api.tell(_owner_of(running)[0], claim.owner.rv, CONTROLLERS[claim.queue].flavour, events)

    def _begin_batch(self) -> None:
        self._window = self._new_window()

    def _new_window(self) -> WriteWindow:
        return WriteWindow(WINDOW * self._settings.writes_in_flight, self._api.reserve, self._late)

    def _reserve(self, running: RunningTurn, step: Reserve) -> Grant | Future[Grant]:
        """Under a fleet's API budget a worker's share bounds what is announced; else its own window and limit do."""
        if self._settings.budget is None:
            return self._window.reserve(running, *step)
        self._redeem(running)
        left_ms = self._settings.turn_limit_ms // 2 - (self._clock.mono_ms() - running.begun_ms)
        promised = self._api.promise(step.wanted, max(0, left_ms) / 1_000)
        return self._window.reserve(running, *step) if promised is None else promised

    def _redeem(self, running: RunningTurn, sent: int = 0) -> None:
        """What the turn was promised and does not send others may."""
        self._api.redeem(self._promised.pop(running, 0) - sent)

    def _late(self, running: RunningTurn) -> bool:
        """Half of the turn's time is over: what it has learned by now must not be lost with the rest."""
        return self._clock.mono_ms() - running.begun_ms > self._settings.turn_limit_ms // 2

    def _announce(self, running: RunningTurn, owner_uid: str, entries: Sequence[Entry]) -> list[NameTaken]:
        asked_ms, settings = self._clock.mono_ms(), self._settings
        taken = self._broker.announce(running.claim, owner_uid, entries, lease_ms=settings.lease_ms)
        running.deadline_ms = asked_ms + settings.lease_ms - settings.send_margin_ms
        return taken


def _owner_of(running: RunningTurn) -> tuple[Any, str]:
    """The owner that the turn is over, as it was claimed, and its resource."""
    resource, owner = CONTROLLERS[running.claim.queue].resource, running.claim.owner
    assert owner is not None, "a turn without an owner has nothing to write or tell"
    return WATCHED[resource].decode(owner.blob), resource


def _of_a_gateway(answer: Answer) -> bool:
    """Whether a proxy before the server says that nobody answers behind it: the server itself would send a Status."""
    return answer.code in (502, 503, 504) and answer.status is None
