"""Takes turns from a claim to their end: claims keys, begins turns, reads what they ask for.

Nothing is sent after the lease as this process counts it: from before it asked, less a margin. The supervisor's
renewals keep others away; they never lengthen this.
"""

from __future__ import annotations

import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from oarlock.broker.protocol import Broker
from oarlock.broker.steps.paging import every
from oarlock.broker.values.claims import Batch, Claim, Claimed, ClaimLimits, Idle, LoadSpec, Watermark
from oarlock.broker.values.objects import Cached, Delta
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.controllers.entries import (
    Controller,
    CustomController,
    DesiredController,
    FanOut,
    PodController,
    ReferenceFanOut,
    RolloutController,
    StepsController,
)
from oarlock.controllers.pods.events import WARNING, Event
from oarlock.controllers.registry import CONTROLLERS, WATCHED, all_queues, entry_of
from oarlock.workers.budget.limiter import current_lane
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.kinds import is_bounded
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings
from oarlock.workers.signing.refusals import ObjectRefused
from oarlock.workers.turn.custom.custom_steps import NeverAgain, StepsContext, custom_steps
from oarlock.workers.turn.custom.desired import DesiredContext, desired
from oarlock.workers.turn.engine.local_cache import LocalCache
from oarlock.workers.turn.engine.queue_order import QueueOrder
from oarlock.workers.turn.engine.read_api import ReadApi
from oarlock.workers.turn.engine.running_turn import RunningTurn
from oarlock.workers.turn.engine.user_code import UserCode
from oarlock.workers.turn.fan_out import fan_out, reference_fan_out
from oarlock.workers.turn.rollout import RolloutContext, rollout
from oarlock.workers.turn.status import KeptCount, LateStatus, StatusWriter
from oarlock.workers.turn.steps import (
    Announce,
    Failures,
    ListLive,
    Look,
    LookApart,
    Read,
    Reserve,
    Resume,
    Send,
    Step,
    Turn,
    TurnRefused,
    Wake,
)
from oarlock.workers.turn.turn import TurnContext, View, turn
from oarlock.workers.turn.turn_outcome import TurnOutcome

log = logging.getLogger("oarlock.worker")

UNKNOWN = Watermark("", 0)
LOAD_MIN = 200
"""From so many children in a batch on, Redis saves more by a call without a script than that call costs."""
READ_AHEAD_AGAIN_MS = 10_000
"""A local cache that is still not known then is read ahead again."""
TOO_LONG_TOLD_AGAIN_MS = 600_000
"""Until it is told again of an object that its function takes longer than a turn may."""
TOO_LONG_MAX = 1_000
"""Such objects that are remembered. Beyond it the oldest may be told of again."""
OUTAGE_AFTER = 3
"""Transport errors in a row after which nothing is claimed until the API answers a probe."""


def load_spec(entry: Controller | FanOut | ReferenceFanOut) -> LoadSpec:
    """What a claim of this controller's queue hands over: the owner, and what is read with it."""
    rate_per_s = entry.rate_per_s if isinstance(entry, CustomController) else 0.0
    return LoadSpec(entry.queue, entry.resource, entry.children, rate_per_s=rate_per_s)


class TurnEngine(ABC):
    """One worker's. ``queues``: those to serve; None: all. What a turn writes is left to the two engines there are: one
    announces and sends it (``engine``), the other records it (``dry_run``).
    """

    count_dropped: ClassVar[bool] = False
    """Whether it is taken for known that the API server drops status.terminatingReplicas."""

    def __init__(
        self,
        broker: Broker,
        api: ReadApi,
        settings: Settings,
        clock: Clock,
        queues: Sequence[str] | None = None,
    ) -> None:
        self._broker, self._api, self._settings, self._clock = broker, api, settings, clock
        self.queues = tuple(queues if queues is not None else all_queues())
        self._order = QueueOrder(load_spec(entry_of(queue)) for queue in self.queues)
        controllers = [CONTROLLERS[queue] for queue in self.queues if queue in CONTROLLERS]
        mirrored = {name for controller in controllers for name in controller.local_caches}
        self._local_caches = {name: LocalCache(WATCHED[name]) for name in sorted(mirrored)}
        self._contexts = {each.queue: self._context(each) for each in controllers if isinstance(each, PodController)}
        self._rollouts = {
            each.queue: self._rollout(each) for each in controllers if isinstance(each, RolloutController)
        }
        self._desired = {
            each.queue: DesiredContext.of(each) for each in controllers if isinstance(each, DesiredController)
        }
        self._user_code = UserCode()
        self._custom = {
            each.queue: StepsContext(self._user_code.starter(each), NeverAgain())
            for each in controllers
            if isinstance(each, StepsController)
        }
        self._too_long: dict[tuple[str, str], int] = {}
        """By queue and UID, when it was told last that the function takes too long."""
        self._looks: dict[Look, list[Cached]] = {}
        """Answers that turns of the batch in hand may share."""
        self._transport_errors = self._read_ahead_ms = 0
        self._woken_by: str | None = None
        """The queue whose token ended our last wait."""

    def _context(self, controller: Controller) -> TurnContext:
        settings, wall_ms = self._settings, self._clock.wall_ms
        reports = controller.flavour.reports_terminating(settings.terminating_replicas)
        status = StatusWriter(reports, wall_ms, kept=KeptCount(self.count_dropped))
        limited = bool(settings.kube_api_qps) or settings.budget is not None
        if is_bounded(settings, controller.queue):  # keys of the same claim wait for the end of the turn
            return TurnContext(settings.view_age_max_ms, wall_ms, status, limited)
        return TurnContext(settings.view_age_max_ms, wall_ms, status, limited, self.may_go_on)

    def _rollout(self, controller: RolloutController) -> RolloutContext:
        reports = controller.flavour.reports_terminating(self._settings.terminating_replicas)
        return RolloutContext(reports, LateStatus(), KeptCount(self.count_dropped))

    def register(self, holder: str, supervisor: str) -> bool:
        """Register this worker. Its name must be new. False: its supervisor is drained."""
        return self._broker.register(holder, supervisor, self.queues)

    def claim(
        self, holder: str, keys_max: int, *, but: Collection[str] = (), beside: Collection[str] | None = None
    ) -> Batch | Idle:
        """Take keys, each queue first in its turn. WAIT while the API does not answer: keys must not be used up.

        ``but``: of none of these queues. ``beside``: turns are under way, and none of these namespaces may have more.
        """
        if self._transport_errors >= OUTAGE_AFTER:
            if not self._api.probe():
                return Idle.WAIT
            self._transport_errors = 0
        return self._ask(holder, self._calls(keys_max, but, beside), beside)

    def finish_and_claim(self, finishes: Sequence[Finish], holder: str, keys_max: int) -> tuple[list[int], Claimed]:
        """``finish``, and then ``claim``, in one round trip where the claim is one call. No turn is under way."""
        if self._transport_errors >= OUTAGE_AFTER:
            return self.finish(finishes), partial(self.claim, holder, keys_max)
        calls = self._calls(keys_max)
        if len(calls) != 1:
            return self.finish(finishes), partial(self._ask, holder, calls)
        ended, asked_ms = self._ending(finishes), self._clock.mono_ms()
        failures, claimed = self._broker.finish_and_claim(ended, *self._words(holder, *calls[0]))
        return failures, lambda: self._taken(claimed(), asked_ms)

    def _calls(
        self, keys_max: int, but: Collection[str] = (), beside: Collection[str] | None = None
    ) -> list[tuple[list[LoadSpec], int]]:
        """What is asked for one after the other until there is something, and how many keys of it."""
        specs = [each for each in self._order.following() if each.queue not in but]
        if self._woken_by is not None:  # a token that is spent on another queue leaves its key to nobody
            specs.sort(key=lambda each: each.queue != self._woken_by)
            self._woken_by = None
        if beside is not None:
            specs = [each for each in specs if self._has_tokens(each.queue)]
        if not self._custom:
            return [(specs, keys_max)] if specs else []
        one_by_one = [each for each in specs if each.queue in self._custom and is_bounded(self._settings, each.queue)]
        rest = [each for each in specs if each not in one_by_one]
        calls = [([each], 1) for each in one_by_one]  # a worker with more would keep them from others that are idle
        owing = [each for each in rest if one_by_one and self._order.owes(each.queue)]
        first = [each for each in rest if each not in owing]
        if first:
            calls.insert(0 if specs[0] is first[0] else len(calls), (first, keys_max))
        if owing:
            calls.append((owing, keys_max))
        return calls

    def _ask(
        self, holder: str, calls: Sequence[tuple[list[LoadSpec], int]], beside: Collection[str] | None = None
    ) -> Batch | Idle:
        reply: Batch | Idle = Idle.EMPTY
        for specs, keys_max in calls:
            asked_ms = self._clock.mono_ms()
            found = self._taken(self._broker.claim(*self._words(holder, specs, keys_max, beside)), asked_ms, beside)
            if found not in (Idle.EMPTY, Idle.SERVED, Idle.LIMITED):
                return found
            if reply is not Idle.LIMITED:
                reply = found
        return reply

    def _has_tokens(self, queue: str) -> bool:
        """Whether the rate limit has a token for a turn of the queue. Where it has none, more turns would only wait."""
        current_lane.set(queue)
        return self._api.has_tokens()

    def _words(
        self, holder: str, specs: Sequence[LoadSpec], keys_max: int, beside: Collection[str] | None = None
    ) -> tuple[str, str, list[LoadSpec], ClaimLimits]:
        """Of the broker's claim. What turns of an earlier batch shared is forgotten."""
        self._looks.clear()
        settings = self._settings
        limits = ClaimLimits(settings.lease_ms, settings.drain_ms, keys_max, settings.batch_bytes, beside, LOAD_MIN)
        return holder, secrets.token_hex(16), [self._with_versions(spec) for spec in specs], limits

    def _taken(self, batch: Batch | Idle, asked_ms: int, beside: Collection[str] | None = None) -> Batch | Idle:
        if isinstance(batch, Batch):
            self._order.served(batch.queue)
            if beside is None:
                self._begin_batch()
            if batch.unloaded:
                batch = self._broker.load(batch)
                late_ms = self._clock.mono_ms() - asked_ms
                batch = replace(batch, claims=[claim._replace(late_ms=late_ms) for claim in batch.claims])
            settings = self._settings
            batch = replace(batch, deadline_ms=asked_ms + settings.lease_ms - settings.send_margin_ms)
            for resource, delta in batch.local_caches.items():
                self._bring_up_to_date(resource, delta)
        return batch

    def _bring_up_to_date(self, resource: str, delta: Delta) -> None:
        """Of a local cache that cannot be read nothing is known: turns that need it fail, and all others go on."""
        cache = self._local_caches[resource]
        try:
            cache.apply(delta)
        except ObjectRefused as refused:
            cache.version = ""
            log.warning(line("local cache refused", resource=resource, why=refused))

    def _with_versions(self, spec: LoadSpec) -> LoadSpec:
        """The claim brings what has changed since in the local caches."""
        controller = CONTROLLERS.get(spec.queue)
        if controller is None or not controller.local_caches:
            return spec
        return spec._replace(
            local_caches=tuple((name, self._local_caches[name].version) for name in controller.local_caches)
        )

    def start(self, batch: Batch, claim: Claim) -> RunningTurn:
        """A turn, not yet advanced. Raises TurnFailed if it cannot begin."""
        outcome = TurnOutcome(claim)
        if claim.refusal:
            raise TurnRefused(claim.refusal, outcome.finish(Verdict.RETRY))
        self._order.begun(claim.queue, len(claim.children))
        match entry_of(claim.queue):
            case PodController() as controller:
                steps = self._turn(batch, claim, controller, outcome)
            case FanOut() as via:
                steps = fan_out(claim, via, outcome)
            case ReferenceFanOut() as via:
                steps = reference_fan_out(claim, via, outcome)
            case DesiredController():
                steps = desired(claim, self._desired[claim.queue], outcome)
            case StepsController() as controller:
                steps = custom_steps(claim, controller, self._custom[claim.queue], outcome)
            case RolloutController() as controller:
                replicasets = batch.watermarks.get(controller.dependents, UNKNOWN)
                steps = rollout(claim, replicasets.rv, controller, self._rollouts[claim.queue], outcome)
        return RunningTurn(claim, steps, outcome, self._clock.mono_ms(), batch.deadline_ms, self)

    def _turn(self, batch: Batch, claim: Claim, controller: PodController, outcome: TurnOutcome) -> Turn:
        pods, nodes = batch.watermarks.get("pods", UNKNOWN), batch.watermarks.get("nodes", UNKNOWN)
        waited_ms = batch.waited_ms[batch.claims.index(claim)] if batch.waited_ms else 0
        view = View(pods.rv, pods.age_ms, waited_ms=waited_ms)
        if controller.local_caches:
            if any(not self._local_caches[name].version for name in controller.local_caches):
                raise outcome.failure(f"{' and '.join(controller.local_caches)} are not known yet")
            view = view._replace(nodes=self._local_caches["nodes"].objects, nodes_age_ms=nodes.age_ms)
        return turn(claim, view, controller, self._contexts[claim.queue], outcome)

    def took_too_long(self, running: RunningTurn, limit_s: int) -> None:
        """The turn is about to be abandoned, as its time is up. That of a function of the steps style is told on the
        object: it would be given up and begun again without end.
        """
        claim, now_ms = running.claim, self._clock.mono_ms()
        if claim.queue not in self._custom or claim.owner is None:
            return
        about = (claim.queue, claim.owner.uid)
        if about in self._too_long and now_ms - self._too_long[about] < TOO_LONG_TOLD_AGAIN_MS:
            return
        self._too_long.pop(about, None)
        self._too_long[about] = now_ms
        if len(self._too_long) > TOO_LONG_MAX:
            del self._too_long[next(iter(self._too_long))]
        name = CONTROLLERS[claim.queue].name
        said = (
            f"the function of {name} was not done after {limit_s} s, the limit of a turn: it is given up, and begun"
            " again from its start; do less in one turn, or raise --turn-limit-ms, and with it --stall-ms"
        )
        running.outcome.events.append(Event(WARNING, "Failed", said))
        log.warning(line("function_too_long", controller=name, key=claim.key, limit_s=limit_s))

    def finish(self, finishes: Sequence[Finish]) -> list[int]:
        """End turns in one call. For each: failed turns in a row, or -1 where the claim was lost."""
        return self._broker.finish(self._ending(finishes))

    def wait(self, timeout_s: float) -> bool:
        """Sleep until a key may be there."""
        self._read_ahead()
        self._woken_by = self._broker.wait(self.queues, timeout_s)
        return self._woken_by is not None

    def _read_ahead(self) -> None:
        """Read the local caches that are not known yet, or else a turn that needs them would begin with that."""
        now_ms = self._clock.mono_ms()
        if now_ms < self._read_ahead_ms:
            return
        for name, cache in self._local_caches.items():
            if not cache.version:
                self._read_ahead_ms = now_ms + READ_AHEAD_AGAIN_MS
                self._bring_up_to_date(name, self._broker.local_cache(name))

    def close(self) -> None:
        """Close the way to the API. No turn is under way any more."""
        self._user_code.close()
        self._api.close()

    def carry_out(self, running: RunningTurn, step: Step) -> Any:
        """A step's result, or a Future of it. A longer lease goes into ``running.deadline_ms``."""
        current_lane.set(running.claim.queue)
        match step:
            case Announce() | Reserve():
                return self._act(running, step)
            case Send():
                self._order.sent(running.claim.queue, len(step.writes))
                return self._act(running, step)
            case Read():
                return self._api.read(step.resource, step.namespace, step.names)
            case Look():
                return self._look(step)
            case LookApart():
                return self._broker.look_apart(step.resource, step.name)
            case ListLive():
                return self._api.list_live(step.resource, step.namespace, step.selector)
            case Wake():
                running.outcome.note.woke(step.queue, len(step.keys))
                why = f"{running.claim.queue} {running.claim.key}"
                return self._broker.add(step.queue, step.keys, why=why)
            case Resume():
                return step.run.resume(step.answer)
            case Failures():
                return self._broker.num_requeues(running.claim.queue, running.claim.key)

    @abstractmethod
    def _act(self, running: RunningTurn, step: Announce | Reserve | Send) -> Any:
        """A step that leads to a write."""

    @abstractmethod
    def may_go_on(self) -> bool:
        """Whether a turn that has carried out a decision may decide on more at once."""

    @abstractmethod
    def answered(self, running: RunningTurn, step: Step, result: Any) -> None:
        """A result that was waited for has come."""

    @abstractmethod
    def ended(self, running: RunningTurn) -> None:
        """A turn is over, however it ended."""

    def _ending(self, finishes: Sequence[Finish]) -> Sequence[Finish]:
        """Turns are about to be ended: what the broker is told of them."""
        return finishes

    def _begin_batch(self) -> None:  # noqa: B027
        """A batch begins, and no turn is under way: nothing to do here."""

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
