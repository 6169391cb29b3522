"""Workers, ingestors and the supervisor of the simulation: the real engine, the real scripts, a virtual clock.

A worker runs in a greenlet that gives way before and after each call to Redis and while its requests are under way, so
it can be stopped, killed or overtaken between any two of its steps.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import orjson
from greenlet import getcurrent, greenlet

from oarlock.broker.values.claims import Batch, Claim, Claimed, ClaimLimits, Idle, LoadSpec
from oarlock.broker.values.errors import ClaimLost, EpochOver
from oarlock.broker.values.events import Event, without_ending
from oarlock.broker.values.objects import Delta
from oarlock.broker.values.turns import Entry, Finish, Verdict
from oarlock.cluster.answer import NO_ANSWER, PAST_DEADLINE, Answer
from oarlock.controllers.entries import Watched
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects.model import ReplicaSet, controller_of
from oarlock.controllers.objects.selector import LabelSelector
from oarlock.controllers.ownership.owner_table import OwnerTable
from oarlock.controllers.pods.events import Event as OwnerEvent
from oarlock.controllers.registry import CONTROLLERS, WATCHED
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.engine.running_turn import RunningTurn
from oarlock.workers.turn.engine.waiting_turns import SLOW_MS
from oarlock.workers.turn.steps import Grant, Listed, TurnFailed, Write
from tests.manual_clock import ManualClock
from tests.simulation.traffic import Flight, news_after
from tests.simulation.violation import Violation
from tests.simulation.world import NAMESPACE, World, as_json
from tests.workers.turn.turns import arrived

LOAD_MIN = 2
"""Owners of the simulation are small: with so many children in a batch they are left to be loaded."""


class Killed(BaseException):
    """kill -9, at the point where the worker stands."""


def give_way() -> None:
    """A point between two steps: the scheduler decides when, and whether, it goes on."""
    getcurrent().parent.switch()


class SteppedBroker:
    """The worker's broker: each call is two points, before it and after it; accepted steps are told to the checker."""

    def __init__(self, broker: Any, checker: Any, count: Callable[[str], None]) -> None:
        self._broker, self._checker, self._count = broker, checker, count
        self._creates = Counter[tuple[str, str]]()
        """Announced, by nonce and key of the claim."""

    def register(self, *args: Any) -> bool:
        registered: bool = self._broker.register(*args)
        return registered

    def claim(self, holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits) -> Batch | Idle:
        give_way()
        batch = self._claim(holder, nonce, specs, limits)
        give_way()
        return batch

    def _claim(self, holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits) -> Batch | Idle:
        batch: Batch | Idle = self._broker.claim(holder, nonce, specs, limits._replace(load_min=LOAD_MIN))
        if isinstance(batch, Batch):
            for claim in batch.claims:
                self._checker.claimed(f"{claim.queue}:{claim.key}", nonce)
            self._checker.viewed(holder, batch)
        return batch

    def load(self, batch: Batch) -> Batch:
        give_way()
        loaded: Batch = self._broker.load(batch)
        self._checker.loaded(batch, loaded)
        give_way()
        return loaded

    def local_cache(self, resource: str) -> Delta:
        give_way()
        delta: Delta = self._broker.local_cache(resource)
        give_way()
        return delta

    def announce(self, claim: Any, *args: Any, **kwargs: Any) -> Any:
        give_way()
        borne = self._broker.announce(claim, *args, **kwargs)
        self._checker.accepted(f"{claim.queue}:{claim.key}", claim.nonce, "announce")
        if not borne:
            self._checker.announced(claim, args[1])
            self._count_creates(claim, args[1])
        give_way()
        return borne

    def _count_creates(self, claim: Claim, entries: Sequence[Entry]) -> None:
        """How often a turn creates more pods than one decision may ask for."""
        before = self._creates[claim.nonce, claim.key]
        self._creates[claim.nonce, claim.key] = asked = before + sum(each.verb == "create" for each in entries)
        controller = CONTROLLERS.get(claim.queue)
        if controller is not None and before <= controller.flavour.burst < asked:
            self._count("turns that went on")

    def add(self, *args: Any, **kwargs: Any) -> int:
        give_way()
        added: int = self._broker.add(*args, **kwargs)
        give_way()
        return added

    def finish(self, turns: Sequence[Finish]) -> list[int]:
        give_way()
        results = self._finish(turns)
        give_way()
        return results

    def _finish(self, turns: Sequence[Finish]) -> list[int]:
        results: list[int] = self._broker.finish(turns)
        for turn, result in zip(turns, results, strict=True):
            if result >= 0:
                self._checker.accepted(f"{turn.queue}:{turn.key}", turn.nonce, "finish")
        return results

    def finish_and_claim(
        self, turns: Sequence[Finish], holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits
    ) -> tuple[list[int], Claimed]:
        """Both are on their way before the first arrives: the claim does, too, though its sender may have died."""
        give_way()
        results = self._finish(turns)
        try:
            give_way()
        finally:
            batch = self._claim(holder, nonce, specs, limits)
        give_way()
        return results, lambda: batch

    def look(self, *args: Any, **kwargs: Any) -> Any:
        return self._broker.look(*args, **kwargs)

    def look_apart(self, *args: Any) -> Any:
        give_way()
        return self._broker.look_apart(*args)

    def page(self, *args: Any, **kwargs: Any) -> Any:
        give_way()
        return self._broker.page(*args, **kwargs)

    def wait(self, *args: Any, **kwargs: Any) -> bool:
        give_way()
        return True


class Sent(NamedTuple):
    """Writes of one step, until when they are waited for, and what is waited on."""

    flights: list[Flight]
    until_ms: int
    answers: Future[list[Answer]]


class SimApi:
    """Requests that take as long as the scheduler likes, and are answered, or not."""

    is_proven = True

    def __init__(self, world: Any, clock: ManualClock, settings: Settings, sender: str) -> None:
        self._world, self._clock, self._settings, self._sender = world, clock, settings, sender
        self._sent: list[Sent] = []

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        if self._clock.mono_ms() >= deadline_ms:
            self._world.count("too late to send")
            return arrived([PAST_DEADLINE] * len(writes))
        self._world.on_send(self._sender, writes)
        until_ms = self._clock.mono_ms() + self._settings.request_timeout_ms
        sent = Sent([self.fly(write) for write in writes], until_ms, Future())
        self._sent.append(sent)
        return sent.answers

    def hand_over(self) -> None:
        """The answers that have arrived by now, or whose time is over."""
        now_ms = self._clock.mono_ms()
        for sent in list(self._sent):
            if now_ms >= sent.until_ms or all(flight.arrived for flight in sent.flights):
                self._sent.remove(sent)
                sent.answers.set_result([self._answer(flight) for flight in sent.flights])

    def fly(self, write: Write) -> Flight:
        """The write is on its way."""
        flight: Flight = self._world.send(write, self._sender)
        return flight

    def _answer(self, flight: Flight) -> Answer:
        if flight.arrived and flight.answer is not None:
            return flight.answer
        self._world.count("unanswered")
        self._world.on_no_answer(self._sender, flight.write)
        return Answer(NO_ANSWER, error="no answer")

    def read(self, resource: str, namespace: str, names: tuple[str, ...]) -> Future[list[Answer]]:
        give_way()
        return arrived([self._world.get(resource, name) for name in names])

    def list_live(self, resource: str, namespace: str, selector: LabelSelector | None = None) -> Future[Listed]:
        give_way()
        self._world.count("live lists" if selector is None else "live lists of selected pods")
        meant = [each for each in self._world.pods.values() if selector is None or selector.matches(each[1].labels)]
        items = [orjson.dumps(as_json(rv, obj)) for rv, obj in meant]
        return arrived(Listed(str(self._world.rv), items))

    def reserve(self, count: int, behind: int = 0) -> Grant:
        return Grant(count, 0)

    def has_tokens(self) -> bool:
        return True

    def tell(self, owner: ReplicaSet, owner_rv: str, flavour: Flavour, events: Iterable[OwnerEvent]) -> None:
        pass

    def probe(self) -> bool:
        return True

    def close(self) -> None:
        pass


class Worker:
    """A worker process: ``step`` lets it go on to its next point."""

    def __init__(
        self,
        name: str,
        broker: Any,
        world: Any,
        clock: ManualClock,
        settings: Settings,
        checker: Any,
        keys_max: int,
        *,
        api: Any = None,
        queues: Sequence[str] = ("replicaset",),
    ) -> None:
        self.name, self.task, self.alive, self.frozen_until = name, "", True, 0
        self.beside = False
        """Whether it claims further keys beside turns that wait for long."""
        self.host_frozen = self.left = False
        self._following: Batch | Idle | None = None
        """What was claimed with the end of the last batch."""
        self._keys_max = keys_max
        self._api = api or SimApi(world, clock, settings, name)
        self._world, self._clock, self._settings = world, clock, settings
        self.engine = Engine(SteppedBroker(broker, checker, world.count), self._api, settings, clock, queues)
        self.registered = self.engine.register(name, "supervisor")
        self._life = greenlet(self._live)

    def _live(self) -> None:
        with contextlib.suppress(Killed, EpochOver):
            while True:
                self._one_batch()

    def _one_batch(self) -> None:
        batch, self._following = self._following or self.engine.claim(self.name, self._keys_max), None
        if batch in (Idle.UNKNOWN, Idle.DRAIN):
            self.left = batch is Idle.DRAIN
            raise Killed
        if isinstance(batch, Idle):
            self.engine.wait(1.0)
            return
        finishes: list[Finish] = []
        waiting: list[RunningTurn] = []
        asks = self.beside and not any(claim.crashes for claim in batch.claims)
        self._begin(batch, waiting, finishes)
        begun_ms = over_ms = self._clock.mono_ms()
        while waiting:
            if finishes and self._clock.mono_ms() - over_ms >= self._settings.slow_turn_ms:
                self.engine.finish(finishes)
                finishes.clear()
            self._api.hand_over()
            ready = next((turn for turn in waiting if turn.waits_for is not None and turn.waits_for.done()), None)
            if ready is None and asks and self._clock.mono_ms() - begun_ms >= SLOW_MS:
                more = self.engine.claim(self.name, self._keys_max, beside=())
                asks = more is not Idle.ALONE
                if isinstance(more, Batch):
                    self._world.count("claimed beside others")
                    self._begin(more, waiting, finishes)
                else:
                    self._world.count("turns end for a lone key" if more is Idle.ALONE else "nothing beside others")
                begun_ms = self._clock.mono_ms()
                continue
            if ready is None:
                give_way()
                continue
            waiting.remove(ready)
            self._advance(ready.claim, lambda turn=ready: turn, waiting, finishes)
            over_ms = over_ms if len(finishes) > 1 else self._clock.mono_ms()
        if finishes and all(each.verdict is Verdict.OK for each in finishes):
            _, claimed = self.engine.finish_and_claim(finishes, self.name, self._keys_max)
            self._following = claimed()
            self._world.count("keys claimed with an end" if isinstance(self._following, Batch) else "none with an end")
        elif finishes:
            self.engine.finish(finishes)
        self.task = ""

    def _begin(self, batch: Batch, waiting: list[RunningTurn], finishes: list[Finish]) -> None:
        if any(claim.crashes for claim in batch.claims):
            self._world.count("lone keys")
            if waiting or len(batch.claims) > 1:
                raise Violation(f"I11: {self.name} has other keys beside one that crashed a worker")
        for claim in batch.claims:
            self._advance(claim, lambda claim=claim: self.engine.start(batch, claim), waiting, finishes)

    def _advance(
        self, claim: Claim, turn: Callable[..., RunningTurn], waiting: list[RunningTurn], finishes: list[Finish]
    ) -> None:
        """As the real worker: as far as a turn goes without waiting; then it waits, or is over."""
        self.task = f"{claim.queue}:{claim.key}"
        try:
            running = turn()
            finish = running.advance()
        except TurnFailed as failure:
            finishes.append(failure.finish)
        except ClaimLost:
            return
        else:
            if finish is not None:
                finishes.append(finish)
                return
            if waiting:
                self._world.count("turns at once")
            waiting.append(running)

    def step(self) -> None:
        self._life.switch()
        self.alive = not self._life.dead

    def kill(self) -> None:
        if not self._life.dead and self._life:
            self._life.throw(Killed)
        self.alive = False


class Ingestor:
    """Reads the journal from a position per resource; may be killed (and forget) or be shown an old position."""

    def __init__(self, world: World, broker: Callable[[], Any], name: str) -> None:
        self._world, self._broker, self._name = world, broker, name
        self.positions: dict[str, int] = {}
        self._owners = OwnerTable()
        self._lists = 0
        self._staged: dict[str, tuple[str, str]] = {}
        self._known: set[str] = set()

    def step(self, resource: str, size: int) -> None:
        """Apply the next few events of a resource, or list it."""
        broker = self._broker()
        position = self.positions.get(resource)
        if position is None:
            mark = broker.watermark(resource)
            if mark is None:
                return
            position = self.positions[resource] = int(mark)
        news = news_after(self._world.journal, position, resource)[:size]
        to = news[-1].rv if len(news) == size else max(position, self._world.rv)
        result = broker.ingest(resource, str(position), str(to), [self._event(each) for each in news])
        if result.verdict == "OK":
            self.positions[resource] = to
        elif result.verdict == "GAP":
            self._world.count("gaps")
            self.positions[resource] = int(result.watermark)
        else:
            self._world.count("lists needed")  # a new epoch: whoever opens it lists

    def list_stepwise(self, resource: str) -> None:
        """The next half of a list."""
        if resource in self._staged:
            self.commit(resource)
        else:
            self.stage(resource)

    def stage(self, resource: str) -> None:
        """The first half of a list: what it shows is of now, whenever it is committed."""
        broker = self._broker()
        self._lists += 1
        generation, rv = f"{self._name}-{self._lists}-{self._world.rv}", self._world.rv
        table: dict[str, Any] = self._world.pods if resource == "pods" else self._world.owners
        events = [self._make(resource, name, str(at), obj) for name, (at, obj) in table.items()]
        if broker.stage(resource, generation, events):
            self._staged[resource] = generation, str(rv)

    def commit(self, resource: str) -> None:
        """The second half, if there was a first."""
        if resource not in self._staged:
            return
        broker = self._broker()
        generation, rv = self._staged.pop(resource)
        result = broker.commit_list(resource, generation, rv)
        if result.verdict == "OLD":
            self._world.count("old lists")
        if result.verdict != "BUSY":
            self.positions[resource] = int(result.watermark) if result.verdict == "OLD" else int(rv)
        while broker.republish():
            pass

    def rewind(self, resource: str, by: int) -> None:
        """Its watch shows events again that it has seen."""
        known = self.positions.get(resource)
        if known is not None:
            self.positions[resource] = max(10, known - by)

    def forget(self) -> None:
        """kill -9 and a restart."""
        self.positions.clear()
        self._staged.clear()

    def _event(self, change: Any) -> Event:
        if change.obj is None:
            return Event(f"{NAMESPACE}/{change.name}", str(change.rv), change.uid, None)
        return self._make(change.resource, change.name, str(change.rv), change.obj, added=change.uid not in self._known)

    def _make(self, resource: str, name: str, rv: str, obj: Any, *, added: bool = False) -> Event:
        if resource == "replicasets":
            self._owners.note("replicaset", obj)
        self._known.add(obj.uid)
        kind: Watched[Any] = WATCHED[resource]
        routes, apart = kind.route(obj, False, self._owners), kind.apart(obj)
        wakes = tuple(f"{queue}:{key}" for queue, key in routes.wake)
        blob = without_ending(kind.encode(obj), routes.kind, obj.uid)
        return Event(
            *(f"{NAMESPACE}/{name}", rv, obj.uid, blob, routes.index, wakes),
            apart=apart,
            kind=routes.kind,
            change="added" if added and controller_of(obj) else "observed" if routes.observed else "set",
        )
