"""One seeded run: a scheduler that lets workers, ingestors, kubelets, users and faults take steps in any order.

The invariants are looked at after every step; at the end the faults stop and everything must come to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.steps import Write
from tests.manual_clock import ManualClock
from tests.simulation.actors import Ingestor, Worker
from tests.simulation.checker import Checker, Violation
from tests.simulation.dice import Dice
from tests.simulation.people import People
from tests.simulation.progress import OBSERVED_MS, STAGES, stalled, unobserved
from tests.simulation.refusals import Place, Refusals
from tests.simulation.replay import Replay
from tests.simulation.traffic import Flight
from tests.simulation.world import NAMESPACE, World, is_active

DEFAULTS = Settings()
QUIET_MS = 2_500
"""How fast time passes at the end, while only a delayed key is left. A longer step would look like a jump."""


@dataclass(frozen=True)
class Weights:
    """How often each kind of step is drawn."""

    worker: int = 50
    land: int = 12
    arrive: int = 12
    ingest: int = 14
    supervise: int = 6
    kubelet: int = 8
    user: int = 2
    kill: int = 1
    freeze: int = 1
    lose_answer: int = 2
    ingestor: int = 1
    redis: float = 0
    people: float = 0
    pace_ms: tuple[int, ...] = (0, 0, 1, 1, 5, 20, 100, 400)
    """How much time may pass between two steps."""
    wishes: tuple[int, ...] = (0, 1, 2, 4, 7)
    """What users scale to."""
    deeds: tuple[str, ...] = ("scale", "scale", "delete", "fail", "relabel")
    """What users do."""
    aimed: str = ""
    """Only workers are killed that have a write of this verb under way."""
    refuses: Mapping[str, float] = field(default_factory=dict)
    """By verb, of which share of the names, or nodes, every write of pods is answered with 500."""
    refuses_most: int = 2
    """Of an owner and a verb at any time."""
    faulty: float = 0.0
    """How many of the other writes meet a fault of the server."""
    keeps_dead_writes: float = 0.0
    """How often a write of a dead sender is passed over when one is chosen to land: it lands late."""
    beside: bool = False
    """Whether workers claim further keys beside turns that wait for long."""


class Simulation:
    """``new_broker(epoch)`` gives a broker of that epoch, empty when it is the first call for it.

    ``on_clock`` tells the scripts' clock. ``strict`` owners, ``workers`` and ``settings`` as wanted.
    ``residue_ms``: how long after it was sent a write may land.
    ``drain``: whether an epoch waits for the writes of the one before.
    """

    resources: tuple[str, ...] = ("pods", "replicasets")
    queues: tuple[str, ...] = ("replicaset",)
    stages: Mapping[str, int] = STAGES
    draws: tuple[str, ...] = ("worker", "land", "arrive", "ingest", "supervise", "kubelet", "user", "kill", "freeze")
    draws += ("lose_answer", "ingestor", "redis", "people")
    world: Any
    checker: Any
    ingestors: list[Any]

    def __init__(
        self,
        seed: int,
        new_broker: Callable[[int], Any],
        on_clock: Callable[[int], None],
        *,
        weights: Weights | None = None,
        workers: int = 3,
        owners: int = 2,
        strict: bool = False,
        settings: Settings | None = None,
        residue_ms: int | None = None,
        drain: bool = True,
    ) -> None:
        self._residue_ms, self._drain = residue_ms, drain
        self.seed, self._random = seed, Dice(seed)
        self._weights, self._count = weights or Weights(), workers
        self._drawn = [getattr(self, f"_{name}") for name in self.draws]
        self._up_to = list(accumulate(getattr(self._weights, name) for name in self.draws))
        """Of each draw its weight and those before it."""
        self.settings = settings or DEFAULTS
        self.clock, self._on_clock, self._new_broker = ManualClock(), on_clock, new_broker
        self._on_clock(self.clock.wall_ms())
        self.epoch, self.broker = 1, new_broker(1)
        self._drained_ms: int | None = 0
        self.workers: list[Worker] = []
        self._orphaned: list[Worker] = []
        self._names = self.steps = 0
        self.churned_ms, self._begun_ms = 0, self.clock.mono_ms()
        self.healing = False
        weights = self._weights
        self.refusals = Refusals(weights.refuses, weights.refuses_most, self._place, self.clock.mono_ms, self._random)
        self._found(owners, strict)
        self._replay = Replay(self.world.journal)
        self.people = People(self._random, self.clock.wall_ms, self.world.count)
        self.checker.on_claim = self.people.claimed

    def _found(self, owners: int, strict: bool) -> None:
        """The cluster as it is at first, who looks at it, and who watches over it."""
        self.world = World(self.clock.mono_ms)
        self.checker = Checker(self.world)
        self.world.on_create, self.world.on_delete = self.checker.created, self.checker.deleted
        self.world.on_other = self.checker.other
        slow_starts = self.checker.slow_starts
        self.world.on_send, self.world.on_no_answer = slow_starts.sent, slow_starts.no_answer
        self.world.on_loss = slow_starts.new_epoch
        for number in range(owners):
            replicas = self._random.choice(self._weights.wishes)
            uid = self.world.add_owner(f"web{number}", replicas, strict=strict)
            self.checker.owner_changed(uid, replicas)
        self.ingestors = [Ingestor(self.world, lambda: self.broker, f"i{n}") for n in range(2)]

    # -- the run

    def run(self, steps: int) -> None:
        """Raises Violation, with the seed and the step at which it happened."""
        try:
            self._open()
            for _ in range(steps):
                self.step()
            self.churned_ms = self.clock.mono_ms() - self._begun_ms
            self._heal()
        except Violation as violation:
            raise Violation(f"seed {self.seed}, step {self.steps}: {violation}") from None
        finally:
            for worker in self.workers:
                worker.kill()

    def step(self) -> None:
        """One step of somebody, then the look at the invariants."""
        self.steps += 1
        self._advance(self._random.choice(self._weights.pace_ms))
        self._random.weighted(self._drawn, self._up_to)()
        self.checker.at_rest()
        if self.steps % 20 == 0:
            self._check_cache()
            self._check_queues()

    def _check_cache(self) -> None:
        """I6: the cache is what the API held at the watermark."""
        for resource in self.resources:
            mark = self.broker.watermark(resource)
            if mark is not None:
                cached, held = self.broker.cached(resource), self._replay.held(resource, int(mark))
                if cached != held:
                    raise Violation(f"I6: the cache of {resource} at {mark} is {cached}, the API held {held}")
                kept, of_objects = self.broker.counts(resource)
                if kept != of_objects:
                    raise Violation(f"I6: of {resource} {kept} is counted, but there are {of_objects}")

    def _check_queues(self) -> None:
        """I3, I12: a key is queued where it has one place in its queue, and nowhere else."""
        for queue in self.queues:
            front, behind = self.broker.places(queue)
            if sorted([*front, *behind]) != sorted(self.broker.queued_keys(queue)):
                raise Violation(f"I12: {front} and {behind} are queued, but {self.broker.queued_keys(queue)} should be")
            if behind:
                self.world.count("waited behind the front")

    def _advance(self, by_ms: int) -> None:
        if by_ms:
            self.clock.advance(by_ms)
            self._on_clock(self.clock.wall_ms())
        if not self.world.flights:
            return
        gone_ms = self.clock.mono_ms() - (self._residue_ms or self.settings.request_timeout_ms + 1000)
        for flight in self.world.flights:
            if flight.answer is None and not flight.lost and flight.sent_ms < gone_ms:
                flight.lost = True  # the server has given up on it: it will never land
        self.world.flights = [f for f in self.world.flights if not f.lost and not (f.answer and f.arrived)]

    # -- steps

    def _worker(self) -> None:
        now_ms = self.clock.mono_ms()
        ready = [w for w in self.workers if w.alive and w.frozen_until <= now_ms]
        if ready:
            worker = self._random.choice(ready)
            worker.step()
            if not worker.alive:
                self._see_off()

    def _see_off(self) -> None:
        """Workers that have ended are workers no more."""
        for worker in self.workers:
            if worker.left:
                self.people.left(self.broker, worker.name)
        self.workers = [w for w in self.workers if not w.left and (w.alive or w.host_frozen)]

    def _land(self) -> None:
        under_way = [f for f in self.world.flights if f.answer is None]
        if not under_way:
            return
        flight = self._random.choice(under_way)
        orphaned = flight.sender not in {worker.name for worker in self.workers if worker.alive}
        if not orphaned or self._random.random() >= self._weights.keeps_dead_writes:
            self._land_one(flight)

    def _land_one(self, flight: Flight) -> None:
        living = {worker.name for worker in self._living()}
        self.world.land(flight, sender_lives=flight.sender in living, fault=self._fault_of(flight.write))

    def _living(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.alive]

    def _fault_of(self, write: Write) -> str:
        """What the server makes of a write; empty where it does its work."""
        fault = self.refusals.fault_of(write)
        if fault:
            self.world.count(f"{write.verb}s refused")
        elif not self.healing and self._weights.faulty and self._random.random() < self._weights.faulty:
            fault = self._random.choice(["429", "500", "500 late"] + ["409"] * (write.verb != "create"))
        return fault

    def _place(self, write: Write) -> Place | None:
        """What a lasting fault would be tied to: for pods of ReplicaSets their names."""
        return Place(write.name.rpartition("-")[0], write.verb, write.name) if write.resource == "pods" else None

    def _arrive(self) -> None:
        answered = [f for f in self.world.flights if f.answer is not None and not f.arrived]
        for flight in answered[: self._random.randint(1, 4)]:
            flight.arrived = True

    def _lose_answer(self) -> None:
        answered = [f for f in self.world.flights if f.answer is not None and not f.arrived]
        if answered:
            self._random.choice(answered).lost = True

    def _ingest(self) -> None:
        ingestor = self._random.choice(self.ingestors)
        if self._drained_ms is None or self.clock.mono_ms() >= self._drained_ms:
            ingestor.step(self._random.choice(self.resources), self._random.randint(1, 5))
            if self._drained_ms is not None:
                self._open()

    def _ingestor(self) -> None:
        """An ingestor dies, is shown an old position, or lists slowly."""
        ingestor, resource = self._random.choice(self.ingestors), self._random.choice(self.resources)
        if self._drained_ms is not None:
            return
        match self._random.choice(("kill", "rewind", "stage", "commit", "commit")):
            case "kill":
                ingestor.forget()
            case "rewind":
                ingestor.rewind(resource, self._random.randint(1, 10))
            case "stage":
                ingestor.stage(resource)
            case "commit":
                ingestor.commit(resource)
        mark = self.broker.watermark(resource)
        if mark is not None:
            self.checker.watermark_is(self.epoch, resource, int(mark))

    def _open(self) -> None:
        if self._drained_ms is None or self.clock.mono_ms() < self._drained_ms:
            return
        for resource in self.resources:
            if self.broker.watermark(resource) is None:
                self.ingestors[0].list_stepwise(resource)
        if self.broker.open(self.resources) == "":
            self._drained_ms = None

    def _supervise(self) -> None:
        """What a supervisor does each second, and the restart of what died."""
        for dead in self._orphaned:
            self.broker.release(dead.name, blamed=dead.task)
        self._orphaned.clear()
        living = [w for w in self.workers if w.alive and not w.host_frozen]
        for lost in self.broker.renew([w.name for w in living], lease_ms=self.settings.lease_ms):
            for worker in living:
                if worker.name == lost:
                    worker.kill()
        self.broker.reclaim()
        self.broker.due()
        while self._drained_ms is None and sum(w.alive for w in self.workers) < self._count:
            self._names += 1
            keys_max = self._random.choice((1, 2))
            name = f"w{self._names}"
            worker = self._hire(name, keys_max)
            if not worker.registered:
                worker.kill()
                break
            self.people.hired(name)
            self.workers.append(worker)

    def _hire(self, name: str, keys_max: int) -> Worker:
        worker = Worker(name, self.broker, self.world, self.clock, self.settings, self.checker, keys_max)
        worker.beside = self._weights.beside
        return worker

    def _kubelet(self) -> None:
        pods = list(self.world.pods.values())
        if not pods:
            return
        _, pod = self._random.choice(pods)
        if pod.deleting_ms or pod.phase == "Failed":
            self.world.remove_pod(pod.name)
        elif not pod.node_name:
            self.world.change_pod(pod.name, node_name=f"n{self._random.randint(1, 3)}", phase="Running")
        else:
            now = 0 if pod.ready else self.clock.wall_ms()
            self.world.change_pod(pod.name, ready=not pod.ready, ready_since_ms=now)

    def _user(self) -> None:
        _, owner = self._random.choice(list(self.world.owners.values()))
        mine = self.world.active(owner.uid)
        match self._random.choice(self._weights.deeds):
            case "scale":
                replicas = self._random.choice(self._weights.wishes)
                self.world.change_owner(owner.name, replicas=replicas)
                self.checker.owner_changed(owner.uid, replicas)
            case "delete" if mine:
                self.checker.other(owner.uid, -1)
                self.world.change_pod(self._random.choice(mine).name, deleting_ms=self.clock.wall_ms())
            case "fail" if mine:
                self.checker.other(owner.uid, -1)
                self.world.change_pod(self._random.choice(mine).name, phase="Failed", ready=False)
            case "relabel" if mine:
                self.checker.other(owner.uid, -1)
                self.world.change_pod(self._random.choice(mine).name, labels={"app": "other"})

    def _prey(self) -> list[Worker]:
        """Who may be killed."""
        verb = self._weights.aimed
        busy = {f.sender for f in self.world.flights if f.answer is None and f.write.verb == verb}
        return [w for w in self.workers if w.alive and (w.name in busy or not verb)]

    def _kill(self) -> None:
        living = self._prey()
        if living:
            victim = self._random.choice(living)
            if any(f.sender == victim.name and f.answer is None for f in self.world.flights):
                self.world.count("killed with a write under way")
            victim.kill()
            self.workers.remove(victim)
            if self._random.random() < 0.7:
                self._orphaned.append(victim)  # its supervisor sees it; else the whole host is gone and the lease ends

    def _freeze(self) -> None:
        living = [w for w in self.workers if w.alive]
        if living:
            victim = self._random.choice(living)
            victim.frozen_until = self.clock.mono_ms() + self._random.choice((100, 3_000, 8_000, 60_000))
            victim.host_frozen = self._random.random() < 0.5

    def _people(self) -> None:
        """Somebody steers the fleet."""
        owners = [f"{NAMESPACE}/{owner.name}" for _, owner in self.world.owners.values()]
        self.people.act(self.broker, owners, [worker.name for worker in self._living()])

    def _redis(self) -> None:
        """The data are lost: all workers are ended, the next epoch drains, then everything is listed anew."""
        self.world.count("redis losses")
        for worker in self.workers:
            worker.kill()
        self.workers, self._orphaned = [], []
        self.epoch += 1
        self.broker = self._new_broker(self.epoch)
        self._on_clock(self.clock.wall_ms())
        self.people.restore(self.broker)
        self._drained_ms = self.clock.mono_ms() + (self.settings.drain_ms if self._drain else 0)
        self.ingestors[0].forget()  # the other goes on from where it was, which the new cache may not have reached
        self.world.on_loss()

    # -- the end

    def _heal(self) -> None:
        """No more faults but those that last: every request lands and is answered, every event arrives. Each owner must
        get on as far as these let it, and when they are over too, all must come to rest.
        """
        self.healing = True
        self.people.end_all(self.broker)
        for worker in self.workers:
            if worker.host_frozen:
                worker.kill()
        self.workers = [w for w in self.workers if w.alive]
        for worker in self.workers:
            worker.frozen_until = 0
        if self._weights.refuses:
            self._progress()
        self.refusals.lifted = True
        self._calm_until(self._settled, "I10: never at rest")

    def _progress(self) -> None:
        """Whatever is refused for ever, the rest of each owner comes to where its owner wants it, and soon."""
        for name, within_ms in self.stages.items():
            self._ask(name)
            self._calm_until(lambda: not self._stalled(), f"no progress ({name}): {{stalled}}", within_ms)
            self._calm_until(lambda: not self._unobserved(), f"no progress ({name}): not observed", OBSERVED_MS)

    def _stalled(self) -> str:
        return stalled(self.world, self.refusals)

    def _unobserved(self) -> str:
        return unobserved(self.world)

    def _ask(self, stage: str) -> None:
        """Something else is asked of the owners while the faults last."""
        for _, owner in list(self.world.owners.values()):
            if stage == "as it is":
                self._count_lasting(owner.name)
                continue
            replicas = {"scaled to 0": 0, "scaled up": 7, "scaled down": 3}[stage]
            self.world.change_owner(owner.name, replicas=replicas)
            self.checker.owner_changed(owner.uid, replicas)

    def _count_lasting(self, owner: str) -> None:
        for verb in ("create", "delete"):
            for _ in self.refusals.undone(owner, verb):
                self.world.count(f"{verb}s refused for ever")

    def _calm_until(self, done: Callable[[], bool], complaint: str, within_ms: int = 2_000_000) -> None:
        """Rounds without chance, until it is done. Raises Violation."""
        end_ms = self.clock.mono_ms() + within_ms
        for _ in range(2_000):
            self.steps += 1
            for flight in list(self.world.flights):
                if flight.answer is None:
                    self._land_one(flight)
                flight.arrived = True
            self._supervise()
            for ingestor in self.ingestors:
                for resource in self.resources:
                    if self._drained_ms is None or self.clock.mono_ms() >= self._drained_ms:
                        ingestor.step(resource, 50)
            self._open()
            for worker in list(self.workers):
                if worker.alive:
                    worker.step()
            self._see_off()
            self._calm()
            self._advance(50)
            if not self.busy() and not self.world.flights:
                self._advance(QUIET_MS)
            self.checker.at_rest()
            if done():
                return
            if self.clock.mono_ms() > end_ms:
                break
        raise Violation(f"{complaint.format(stalled=self._stalled())}: {self.describe()}")

    def _calm(self) -> None:
        """What becomes of pods where nothing goes wrong."""
        for _, pod in list(self.world.pods.values()):
            if pod.deleting_ms or pod.phase == "Failed":
                self.world.remove_pod(pod.name)

    def _settled(self) -> bool:
        if self.world.flights:
            return False
        for _, owner in self.world.owners.values():
            active = self.world.active(owner.uid)
            if len(active) != owner.replicas or owner.status.replicas != owner.replicas:
                return False
            if owner.status.observed_generation != owner.generation:
                return False
        return self.busy() == 0

    def busy(self) -> int:
        """Keys that are queued, in work or parked."""
        return sum(int(self.broker.busy(queue)) for queue in self.queues)

    def describe(self) -> str:
        """For the message of a failure."""
        lines = []
        for rv, owner in self.world.owners.values():
            pods = self.world.existing(owner.uid)
            active = sum(is_active(pod) for pod in pods)
            lines.append(
                f"{owner.name}@{rv}: {active}/{owner.replicas} active of {len(pods)},"
                f" status {owner.status.replicas} gen {owner.status.observed_generation}/{owner.generation}"
            )
        return "; ".join(lines) + f"; busy {self.busy()}; seen {self.world.seen}"
