"""Why has nothing happened to a key? All that is known about it, as sentences. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from oarlock.broker.expectations import BACK_OFF
from oarlock.broker.looks.hearing import Hearing
from oarlock.broker.looks.views import KeyView, ResourceView
from oarlock.cli.explain.expectation_sentences import sentences_of_expectations
from oarlock.cli.explain.history_sentences import queued_sentences, turn_sentences
from oarlock.cli.look.hearings import unheard
from oarlock.cli.tables import a_second, counted, listed, span
from oarlock.controllers.entries import Controller, PodController
from oarlock.controllers.objects.model import Pod, ReplicaSet, controller_of
from oarlock.controllers.plan import NOTHING_UNANSWERED, Plan, Surroundings
from oarlock.workers.process.log_line import printable

STALE_MS = 75_000
"""If nobody confirmed a watermark for so long, no ingestor hears the API: even without events, the end of each watch
confirms the watermark, and watches end sooner."""
AHEAD_MAX = 1_000
"""So many keys ahead of another are counted."""


@dataclass(frozen=True, slots=True)
class Line:
    """The line for the rate of a namespace in which a key waits: how many are before it, ms until it is queued."""

    rate_per_s: float
    ahead: int
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Fleet:
    """What concerns every key. ``workers``: how many are registered; ``ahead``: how many keys are queued before it;
    ``paused``: why no turn begins, in phase HELD. ``rate_per_s``: of the key's controller, 0 for no bound;
    ``rate_wait_ms``: how long the key waits for it. ``pauses``: those over the key, a line each.
    ``hearings``: what the ingestors hear. ``budget_wait``: why a turn under way may wait for the API budget.
    ``line``: where the key waits for the rate of its namespace.
    """

    phase: str
    intact: bool
    workers: int
    suspended: bool = False
    ahead: int = 0
    resources: Sequence[ResourceView] = field(default_factory=tuple)
    paused: str = ""
    rate_per_s: float = 0.0
    rate_wait_ms: int = 0
    pauses: Sequence[str] = ()
    hearings: Sequence[Hearing] = ()
    budget_wait: str = ""
    line: Line | None = None


class Subject(ABC):
    """The cached object of a key, of any kind."""

    __slots__ = ()

    @property
    @abstractmethod
    def differs(self) -> bool:
        """Whether a turn would have something to do."""

    @abstractmethod
    def sentences(self, kind: str) -> list[str]:
        """What is known about it."""

    @property
    def waits(self) -> bool:
        """Whether it is not yet as it should be, and only an event will let a turn go on."""
        return False

    @property
    def facts(self) -> dict[str, Any]:
        """What `-o json` tells beside its object."""
        return {}


@dataclass(frozen=True, slots=True)
class Owner(Subject):
    """A ReplicaSet or ReplicationController. ``active``: how many of its pods in the cache are not terminating."""

    obj: ReplicaSet
    rv: str
    active: int
    terminating: int

    @property
    def differs(self) -> bool:
        return self.active != self.obj.replicas or self.obj.status.observed_generation < self.obj.generation

    def sentences(self, kind: str) -> list[str]:
        obj, status = self.obj, self.obj.status
        said = [
            f"{kind} {obj.key} asks for {counted(obj.replicas, 'pod')} and has {self.active} in the cache"
            f" (resourceVersion {self.rv})"
            + (f", and {self.terminating} terminating" if self.terminating else "")
            + f"; its status says {status.replicas} created, {status.ready} ready, {status.available} available."
        ]
        if obj.deleting_ms:
            said.append("It is being deleted: nothing more is done for it.")
        if (ref := controller_of(obj)) is not None:
            said.append(f"{ref.kind} {obj.namespace}/{ref.name} controls it and decides its size.")
        for condition in status.conditions:
            if condition.type == "ReplicaFailure" and condition.status == "True":
                said.append(f"Its last writes failed: {condition.reason}: {condition.message.rstrip('.')}.")
        return said


@dataclass(frozen=True, slots=True)
class OtherOwner(Subject):
    """An owner of a kind that has no sentences of its own: its columns, its pods, and what its controller decides."""

    obj: Any
    rv: str
    controller: Controller
    pods: tuple[Pod, ...]
    now_ms: int

    @property
    def differs(self) -> bool:
        plan = self._plan()
        return plan is not None and plan.writes

    def sentences(self, kind: str) -> list[str]:
        leaving = sum(1 for pod in self.pods if pod.deleting_ms)
        said = [
            f"{kind} {self.obj.key} has {counted(len(self.pods) - leaving, 'pod')} in the cache"
            f" (resourceVersion {self.rv})"
            + (f", and {leaving} terminating" if leaving else "")
            + "".join(f"; {heading}: {cell(self.obj)}" for heading, cell in self.controller.owners.columns.items())
            + "."
        ]
        plan = self._plan()
        if plan is None:
            return said
        if plan.invalid:
            said.append(f"Nothing can be done about it: {plan.invalid}.")
        elif plan.writes:
            said.append(f"A turn would create {counted(len(plan.create), 'pod')} and delete {len(plan.delete)}.")
        return said

    def _plan(self) -> Plan | None:
        """What a turn would decide if no write of ours were without an answer; None of an owner without pods."""
        around, controller = Surroundings(), self.controller
        if not isinstance(controller, PodController):
            return None
        snapshot = controller.snapshot(
            self.obj, self.pods, around, satisfied=True, unanswered=NOTHING_UNANSWERED, blocked=frozenset()
        )
        plan: Plan = controller.decide(snapshot, self.now_ms)
        return plan


def explain(key: KeyView, subject: Subject | None, fleet: Fleet, kind: str = "ReplicaSet") -> list[str]:
    """The sentences, the most important first. Control characters from objects and errors are escaped."""
    about = [f"No {kind} {key.key} is in the cache: it does not exist, or no ingestor has seen it yet."]
    if subject is not None:
        about = subject.sentences(kind)
    said = [*_fleet(fleet), *about, *_state(key, fleet), *_writes(key, fleet), *turn_sentences(key), *_troubles(key)]
    at_rest = key.state == "idle" and key.delayed_in_ms is None and not _expects(key) and not key.min_rv
    if subject is None or not at_rest or (subject.waits and not subject.differs):
        pass
    elif not subject.differs:
        said.append("All is as it should be: there is nothing to do.")
    elif fleet.workers and fleet.phase == "OPEN":
        said.append("Nothing is planned although something differs: `oarlock requeue` asks for another look.")
    return [printable(each) for each in said]


def _expects(key: KeyView) -> bool:
    """Whether it has expectations other than back-offs, which stay for as long as they may matter."""
    fields = key.expectations.fields if key.expectations is not None else ()
    return any(name.partition(" ")[0] not in ("owner", "said", BACK_OFF) for name in fields)


def _fleet(fleet: Fleet) -> list[str]:
    said = []
    if not fleet.intact:
        said.append("Redis lost or changed its data. Nobody works until an ingestor has begun a new epoch.")
    elif fleet.phase == "HELD":
        said.append(
            f"The fleet is paused, because upstream's controllers are at work on the same kinds: {fleet.paused}."
            " Switch these off (docs/take-over.md), then `oarlock resume`."
        )
    elif fleet.phase != "OPEN":
        said.append(
            f"The fleet is in phase {fleet.phase}: the Redis data were lost, and earlier writes may still arrive. Turns"
            " begin once they can no longer arrive and the cluster was listed."
        )
    if not fleet.workers:
        said.append("No worker is registered: nobody claims keys; start some with `oarlock worker`.")
    said += [f"{each}. No turn of it begins until `oarlock resume`." for each in fleet.pauses]
    if fleet.suspended:
        said.append("RQ is suspended: workers wait until `rq resume`.")
    for each in fleet.resources:
        if each.age_ms > STALE_MS:
            deaf = unheard(each.resource, fleet.hearings)
            who = f"{listed(deaf)} {'are' if len(deaf) > 1 else 'is'} deaf to it" if deaf else "no ingestor brings it"
            mend = "`oarlock epoch` says more" if deaf else "start one with `oarlock ingest`"
            said.append(f"The cache of {each.resource} was last confirmed {span(each.age_ms)} ago: {who}; {mend}.")
    return said


def _state(key: KeyView, fleet: Fleet) -> list[str]:
    said = []
    if key.state == "queued":
        some = f"{fleet.ahead}" if fleet.ahead < AHEAD_MAX else f"{AHEAD_MAX} or more"
        ahead = {0: "it is the next one", 1: "1 key is ahead of it"}.get(fleet.ahead, f"{some} keys are ahead of it")
        said.append(f"It is queued: {ahead}.")
        if fleet.rate_wait_ms:
            said.append(
                f"It waits for the rate of its controller, rate_per_s={fleet.rate_per_s:g} in the whole fleet:"
                f" its turn begins in {span(fleet.rate_wait_ms)} at the earliest."
            )
    elif key.lock is not None:
        lock = key.lock
        left = f"for another {span(lock.remaining_ms)} unless renewed"
        if lock.remaining_ms < 0:
            left = f"{span(-lock.remaining_ms)} longer than its lease: it will be reclaimed"
        said.append(f"{lock.holder} is working on it since {span(lock.age_ms)}, {left}.")
        if fleet.budget_wait:
            said.append(fleet.budget_wait)
        if key.state == "running+":
            said.append("Something changed meanwhile: it is queued again as soon as this turn ends.")
    elif key.state == "parked":
        said.append(
            "It is parked, because workers died while working on it; it is tried again, alone, in"
            f" {span(key.parked_in_ms)}. `oarlock requeue` tries it now."
        )
    elif key.state == "held":
        if fleet.line is None:
            said.append("It is held back by a pause, and comes back into the queue when that ends.")
        else:
            some = {0: "it is the next one", 1: "1 key is before it"}.get(
                fleet.line.ahead, f"{fleet.line.ahead} keys are before it"
            )
            said.append(
                f"It waits in line for the limit of its namespace, {a_second(fleet.line.rate_per_s, 'turn')}: {some},"
                f" and its turn begins in {span(fleet.line.wait_ms)} at the earliest. `oarlock rate -n` changes that."
            )
    elif key.state == "idle":
        said.append("It is idle: no event asks for a turn.")
    said += queued_sentences(key)
    if key.delayed_in_ms is not None:
        due = "is due now" if key.delayed_in_ms <= 0 else f"comes in {span(key.delayed_in_ms)}"
        said.append(f"A delayed turn {due}.")
    return said


def _writes(key: KeyView, fleet: Fleet) -> list[str]:
    said = []
    if key.min_rv:
        marks = {each.resource: each.rv for each in fleet.resources}
        for need in key.min_rv.split():
            resource, _, rv = need.partition("=")
            mark = marks.get(resource, "")
            if mark and (len(mark), mark) >= (len(rv), rv):
                continue
            said.append(
                "It waits to read its own writes:"
                f" the cache of {resource} is at revision {mark or 'none'}, needed is {rv}."
            )
    if key.expectations is not None:
        said += sentences_of_expectations(key.expectations)
    elif key.unsettled_age_ms is not None:
        said.append(
            "Writes were announced and their expectations lost: the next turn that acts decides on a live list."
        )
    return said


def _troubles(key: KeyView) -> list[str]:
    said = []
    if key.failures:
        said.append(
            f"Its last {key.failures} turns failed; the traceback is in RQ's failed-job registry from the fifth on"
            " (rq info; the workers' log has each)."
        )
    if key.crashes:
        lost = next((each.did for each in key.turns[:1] if each.verdict == "lost" and each.did != "-"), "")
        said.append(f"It killed its last {key.crashes} workers{lost and f': {lost}'}.")
    if key.suspect:
        said.append(
            "It is suspect: its lease ended, because its worker and the worker's supervisor were gone. It is worked on"
            " alone until one of its turns ends; if that happens again, it counts as the cause."
        )
    return said
