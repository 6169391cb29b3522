"""Plays what would happen, on the copy: the turns of a fleet, one after the other, then pods that get ready, and again.

The turns are those of a worker, with its engine, over the twin of the broker in memory. Only two things are assumed,
each after the turns of a step have come to rest: the pods that the plan has created are ready, and those that are being
deleted are gone. Pods that exist stay as ready as they are. Time passes where something waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.turns import Finish
from oarlock.cli.plan.acts import Act, acts_of
from oarlock.cli.plan.cluster_copy import ClusterCopy, CopyApi
from oarlock.cli.plan.family import Family
from oarlock.cli.plan.kubelet import let_pods_go_on
from oarlock.cluster.answer import Answer
from oarlock.controllers.pods.events import Event as ToldEvent
from oarlock.controllers.registry import CONTROLLERS, WATCHED
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.projection import Projector
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.steps import TurnFailed, Write

HORIZON_MS = 60_000
"""What is due later is not waited for, such as a progress deadline. minReadySeconds lengthen it."""
TURNS_MAX = 2_000
"""In one step. More means that turns undo each other's work."""
_BATCH_BYTES = 1 << 20
_BEFORE_ALL = "0"


class PlannedTime:
    """A clock (``workers.process.clock.Clock``) that goes on only where the plan says so."""

    def __init__(self, wall_ms: int) -> None:
        self.now_ms = wall_ms

    def mono_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return self.now_ms


@dataclass(slots=True)
class Step:
    """``acts``: of the turns until they come to rest. Then ``ready`` pods get ready and ``gone`` pods are gone;
    ``pods`` and ``available`` are there after that.
    """

    acts: list[Act] = field(default_factory=list)
    ready: int = 0
    gone: int = 0
    pods: int = 0
    available: int = 0


@dataclass(slots=True)
class Played:
    """``pods_max``, ``available_min``: at any moment. ``lasts_ms``: the time that was waited for. ``rests``: nothing
    more would happen; else the steps were not enough. ``failures``: of turns, by key. ``events``: warnings, and writes
    that were refused. ``first_pod``: the body of the first pod that was created.
    """

    steps: list[Step] = field(default_factory=list)
    pods_before: int = 0
    available_before: int = 0
    pods_max: int = 0
    available_min: int = 0
    lasts_ms: int = 0
    rests: bool = False
    failures: dict[str, str] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    first_pod: bytes = b""

    @property
    def acts(self) -> list[Act]:
        return [act for step in self.steps for act in step.acts]


class Course:
    """Of one owner, whose object is in the copy, and whose resources are ``resources``."""

    def __init__(self, copy: ClusterCopy, family: Family, resources: tuple[str, ...], clock: PlannedTime) -> None:
        self._copy, self.family, self._clock = copy, family, clock
        self._resources = resources
        store = MemoryStore(clock.wall_ms)
        store.bootstrap(1)
        self._broker = MemoryBroker(store, 1)
        owners = KnownOwners()
        self._projectors = {each: Projector(WATCHED[each], owners) for each in resources}
        self._at = dict.fromkeys(resources, _BEFORE_ALL)
        for each in resources:
            self._broker.stage(each, "g", [])
            self._broker.commit_list(each, "g", _BEFORE_ALL)
        self._broker.open(resources)
        api = CopyApi(copy, self._carry_out, self._told)
        settings = Settings(kube_api_qps=0)
        self._engine = Engine(self._broker, api, settings, clock, family.queues)  # type: ignore[arg-type]
        self._engine.register("plan", "plan")
        self._step, self.played = Step(), Played()

    def play(self, steps_max: int) -> Played:
        """Until nothing more would happen, or for so many steps in which something does."""
        played, begun_ms = self.played, self._clock.now_ms
        self._publish()
        self._broker.add(self.family.queue, [self.family.owner.key])
        played.pods_before, played.available_before = self.family.counts
        played.pods_max, played.available_min = played.pods_before, played.available_before
        try:
            while len(played.steps) < steps_max:
                self._step = Step()
                self._turns()
                if not self._goes_on():
                    played.rests = not played.failures
                    break
        finally:
            self._engine.close()
        played.lasts_ms = self._clock.now_ms - begun_ms
        return played

    def _goes_on(self) -> bool:
        """End the step: pods go on, and time. False: nothing is left to happen."""
        step = self._step
        step.ready, step.gone = let_pods_go_on(self._copy, self._clock.now_ms)
        self._publish()
        if step.ready or step.acts:
            self._pass(max(1, self.family.min_ready_seconds * 1000) if step.ready else 1)
        step.pods, step.available = self.family.counts
        moved = bool(step.acts or step.ready or step.gone)
        if moved:
            self.played.steps.append(step)
        queued, next_ms = self._broker.due()
        if moved or queued:
            return True
        if next_ms is None or next_ms > HORIZON_MS + self.family.min_ready_seconds * 1000:
            return False
        self._pass(next_ms)
        return True

    def _pass(self, ms: int) -> None:
        self._clock.now_ms += ms
        self.family.time_passed(self._clock.now_ms)
        self._broker.due()
        self._publish()

    # -- turns -------------------------------------------------------------------------------------------------------

    def _turns(self) -> None:
        for _ in range(TURNS_MAX):
            batch = self._engine.claim("plan", 1)
            if not isinstance(batch, Batch):
                return
            for claim in batch.claims:
                self._engine.finish([self._turn(batch, claim)])
            self._publish()
        self.played.failures[self.family.owner.key] = f"its turns do not come to rest: {TURNS_MAX} in one step"

    def _turn(self, batch: Batch, claim: Claim) -> Finish:
        at = f"{CONTROLLERS[claim.queue].flavour.kind} {claim.key}"
        self.played.failures.pop(at, None)
        try:
            turn = self._engine.start(batch, claim)
            while (finish := turn.advance()) is None:
                """The copy answers at once."""
            return finish
        except TurnFailed as failed:
            self.played.failures[at] = str(failed)
            return failed.finish

    def _carry_out(self, writes: tuple[Write, ...]) -> list[Answer]:
        """Change the copy, and note what that means. A write that is refused is no act; people are told of it."""
        acts = acts_of(writes, self._copy, self.family, self._clock.now_ms)
        answers = [self._copy.write(each) for each in writes]
        for write, act, answer in zip(writes, acts, answers, strict=True):
            if not answer.ok:
                self._warn(f"would be refused to {write.verb} {write.target}: {answer.message}")
            elif act is not None:
                self._step.acts.append(act)
                if not self.played.first_pod and (act.verb, act.kind) == ("create", "Pod"):
                    self.played.first_pod = write.body
        return answers

    def _warn(self, text: str) -> None:
        if text not in self.played.events:
            self.played.events.append(text)

    def _told(self, event: ToldEvent) -> None:
        if event.type == "Warning":
            self._warn(f"{event.reason}: {event.message}")

    # -- the cache ---------------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Bring what has happened to the cache, as an ingestor does; but wake no owners outside the plan."""
        for resource, group in groupby(self._copy.happened(), key=lambda each: each[0]):
            projector, raw = self._projectors[resource], [event for _, event in group]
            for event in raw:
                self._note(resource, event.object, event.type == "DELETED")
            while raw:
                batch, taken = projector.batch(raw, self._at[resource], self._at[resource], _BATCH_BYTES)
                raw = raw[taken:]
                events = [each._replace(wakes=tuple(filter(self.family.has, each.wakes))) for each in batch.events]
                self._broker.ingest(resource, self._at[resource], batch.to, events)
                self._at[resource] = batch.to
        for resource in self._resources:  # as a bookmark: what the cache holds is what there is
            self._broker.ingest(resource, self._at[resource], self._at[resource], [])

    def _note(self, resource: str, raw: bytes, gone: bool) -> None:
        obj: Any = WATCHED[resource].from_json(raw)[1]
        self.family.note(resource, obj, gone, self._clock.now_ms)
        pods, available = self.family.counts
        self.played.pods_max = max(self.played.pods_max, pods)
        self.played.available_min = min(self.played.available_min, available)
