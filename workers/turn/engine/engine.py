"""Turns carried out for real: claims keys, does what turns' steps ask of Redis and the API, ends turns in one call.

Nothing is sent after the lease as this process counts it: from before it asked, less a margin. The supervisor's
renewals keep others away; they never lengthen this.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from oarlock.broker.paging import every
from oarlock.broker.protocol import Broker
from oarlock.broker.values import (
    Batch,
    Cached,
    Claim,
    ClaimLimits,
    Entry,
    Finish,
    Idle,
    LoadSpec,
    NameTaken,
    Verdict,
    Watermark,
)
from oarlock.cluster.answer import NO_ANSWER, NOT_SENT, Answer
from oarlock.controllers.entries import Controller, FanOut
from oarlock.controllers.registry import CONTROLLERS, FAN_OUTS, WATCHED, all_queues, entry_of
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.api import TurnApi
from oarlock.workers.turn.engine.local_cache import Mirror
from oarlock.workers.turn.engine.running_turn import RunningTurn
from oarlock.workers.turn.engine.write_window import WriteWindow
from oarlock.workers.turn.fan_out import fan_out
from oarlock.workers.turn.steps import (
    Announce,
    Grant,
    ListLive,
    Look,
    Read,
    Reserve,
    Send,
    Step,
    TurnContext,
    TurnRefused,
    View,
    Wake,
)
from oarlock.workers.turn.turn import turn
from oarlock.workers.turn.turn_outcome import TurnOutcome

WINDOW = 4
"""Bulk writes that turns have under way together, over those that are on the wire: 256, as one of them has at most."""
UNKNOWN = Watermark("", 0)
OUTAGE_AFTER = 3
"""Transport errors in a row after which nothing is claimed until the API answers a probe."""


def load_spec(entry: Controller | FanOut) -> LoadSpec:
    """What a claim of this controller's queue hands over: the owner, and what is read with it."""
    return LoadSpec(entry.queue, entry.resource, entry.children)


class Engine:
    """One worker's engine. ``queues``: names of the controllers to serve; None: all there are."""

    def __init__(
        self,
        broker: Broker,
        api: TurnApi,
        settings: Settings,
        clock: Clock,
        queues: Sequence[str] | None = None,
    ) -> None:
        self._broker, self._api, self._settings, self._clock = broker, api, settings, clock
        self.queues = tuple(queues if queues is not None else all_queues())
        self._specs = [load_spec(entry_of(queue)) for queue in self.queues]
        mirrored = {name for queue in self.queues if queue in CONTROLLERS for name in CONTROLLERS[queue].local_caches}
        self._mirrors = {name: Mirror(WATCHED[name]) for name in sorted(mirrored)}
        self._contexts = {
            queue: TurnContext(
                CONTROLLERS[queue].flavour.reports_terminating(settings.terminating_replicas),
                settings.view_age_max_ms,
                clock.wall_ms,
            )
            for queue in self.queues
            if queue in CONTROLLERS
        }
        self._looks: dict[Look, list[Cached]] = {}
        """Answers that turns of the batch in hand may share."""
        self._deadline_ms = 0
        self._transport_errors = 0
        self._window = self._new_window()

    def register(self, holder: str, supervisor: str) -> None:
        """Announce this worker. Its name must be new."""
        self._broker.register(holder, supervisor, self.queues)

    def claim(self, holder: str, keys_max: int) -> Batch | Idle:
        """Take keys, each queue first in its turn. WAIT while the API does not answer: keys must not be used up."""
        if self._transport_errors >= OUTAGE_AFTER:
            if not self._api.probe():
                return Idle.WAIT
            self._transport_errors = 0
        self._specs.append(self._specs.pop(0))
        self._looks.clear()
        self._window = self._new_window()
        settings = self._settings
        asked_ms = self._clock.mono_ms()
        batch = self._broker.claim(
            holder,
            secrets.token_hex(16),
            [self._with_versions(spec) for spec in self._specs],
            ClaimLimits(settings.lease_ms, settings.drain_ms, keys_max, settings.batch_bytes),
        )
        self._deadline_ms = asked_ms + settings.lease_ms - settings.send_margin_ms
        if isinstance(batch, Batch):
            for resource, delta in batch.mirrors.items():
                self._mirrors[resource].apply(delta)
        return batch

    def _with_versions(self, spec: LoadSpec) -> LoadSpec:
        """The claim brings what has changed since in the copies kept here."""
        controller = CONTROLLERS.get(spec.queue)
        if controller is None or not controller.local_caches:
            return spec
        return spec._replace(mirrors=tuple((name, self._mirrors[name].version) for name in controller.local_caches))

    def start(self, batch: Batch, claim: Claim) -> RunningTurn:
        """A turn to be advanced to its end. Raises TurnFailed for one that cannot begin."""
        outcome = TurnOutcome(claim)
        if claim.refusal:
            raise TurnRefused(claim.refusal, outcome.finish(Verdict.RETRY))
        if claim.queue in FAN_OUTS:
            steps = fan_out(claim, FAN_OUTS[claim.queue], outcome)
            return RunningTurn(claim, steps, outcome, self._clock.mono_ms(), self._deadline_ms, self)
        controller = CONTROLLERS[claim.queue]
        if any(not self._mirrors[name].version for name in controller.local_caches):
            raise outcome.failure(f"{' and '.join(controller.local_caches)} are not known yet")
        pods, nodes = batch.watermarks.get("pods", UNKNOWN), batch.watermarks.get("nodes", UNKNOWN)
        all_nodes = self._mirrors["nodes"].objects if controller.local_caches else {}
        view = View(pods.rv, pods.age_ms, all_nodes, nodes.age_ms)
        steps = turn(claim, view, controller, self._contexts[claim.queue], outcome)
        return RunningTurn(claim, steps, outcome, self._clock.mono_ms(), self._deadline_ms, self)

    def finish(self, finishes: Sequence[Finish]) -> list[int]:
        """End turns in one call. For each: failed turns in a row, or -1 where the claim was lost."""
        return self._broker.finish(finishes)

    def wait(self, timeout_s: float) -> bool:
        """Sleep until a key may be there."""
        return self._broker.wait(timeout_s=timeout_s)

    def close(self) -> None:
        """Close the way to the API."""
        self._api.close()

    def carry_out(self, running: RunningTurn, step: Step) -> Any:
        """A step's result, or a Future of it; what it says of the lease goes into ``running.deadline_ms``."""
        match step:
            case Announce():
                return self._announce(running, step.owner_uid, step.entries)
            case Send():
                if running.deadline_ms - self._clock.mono_ms() < self._settings.lease_ms // 2:
                    self._announce(running, "", ())  # still ours? then the lease starts anew
                return self._api.send(step.writes, running.deadline_ms, step.prepaid)
            case Read():
                return self._api.read(step.resource, step.namespace, step.names)
            case Reserve():
                return self._window.reserve(running, step.wanted)
            case Look():
                return self._look(step)
            case ListLive():
                return self._api.list_live(step.resource, step.namespace)
            case Wake():
                return self._broker.add(step.queue, step.keys)

    def answered(self, running: RunningTurn, step: Step, result: Any) -> None:
        """Whether the server can be reached shows in the answers to writes."""
        if isinstance(step, Send):
            self._window.leave(running)
            self._watch_transport(result)

    def ended(self, running: RunningTurn) -> None:
        """What became of it is told, also where it came to nothing."""
        self._window.leave(running)
        claim, events = running.claim, running.outcome.events
        if events and claim.owner is not None:
            controller = CONTROLLERS[claim.queue]
            owner = WATCHED[controller.resource].decode(claim.owner.blob)
            self._api.tell(owner, claim.owner.rv, controller.flavour, events)

    def _new_window(self) -> WriteWindow:
        return WriteWindow(WINDOW * self._settings.writes_in_flight, self._tokens, self._late)

    def _tokens(self, wanted: int) -> Grant:
        return self._api.reserve(wanted)

    def _late(self, running: RunningTurn) -> bool:
        """Half of its time is over: what it has learned by now must not be lost with the rest."""
        return self._clock.mono_ms() - running.begun_ms > self._settings.turn_limit_ms // 2

    def _look(self, step: Look) -> list[Cached]:
        found = self._looks.get(step)
        if found is None:
            if step.paged:
                found = every(self._broker, step.resource, step.entries)
            else:
                found = self._broker.look(step.resource, ids=step.ids, index=step.entries)[1]
            if step.shared:
                self._looks[step] = found
        return found

    def _announce(self, running: RunningTurn, owner_uid: str, entries: Sequence[Entry]) -> list[NameTaken]:
        asked_ms, settings = self._clock.mono_ms(), self._settings
        borne = self._broker.announce(running.claim, owner_uid, entries, lease_ms=settings.lease_ms)
        running.deadline_ms = asked_ms + settings.lease_ms - settings.send_margin_ms
        return borne

    def _watch_transport(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            failed = answer.code in (NO_ANSWER, NOT_SENT)
            self._transport_errors = self._transport_errors + 1 if failed else 0
