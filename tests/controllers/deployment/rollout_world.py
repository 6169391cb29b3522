"""A Deployment, its ReplicaSets and their pods, with independent controllers that see each other late.

What is real: the decisions about sizes. What is played: the API with resourceVersions, the ReplicaSet controller by its
rules (unanswered creates and deletes count both ways, and a generation is observed only where they cannot matter),
caches that lag, and requests that land late, get lost or lose their answers. A request lands within BOUND steps or
never.
"""

from random import Random
from typing import Any

import msgspec

from oarlock.controllers.deployment.annotations import sizes as remembered_sizes
from oarlock.controllers.deployment.model import RECREATE, Deployment, DeploymentStatus
from oarlock.controllers.deployment.plan import Rollout, SizeWrite
from oarlock.controllers.deployment.sizing import limits, recreate, rolling, scaling, sizes
from oarlock.controllers.objects.model import OwnerRef, Pod, ReplicaSet, ReplicaSetStatus
from tests.controllers.builders import with_fields
from tests.controllers.deployment.sizes_builders import sized

BOUND = 40


class Violation(AssertionError):
    """A limit was broken."""


class Running(msgspec.Struct):
    """A pod. `version` changes with it, and a delete is for one version."""

    available: bool = False
    ending: bool = False
    version: int = 0


class Put(msgspec.Struct):
    """A request of the Deployment controller for a ReplicaSet, under way. `announced`: it changes the size."""

    uid: str
    rv: int
    replicas: int
    annotations: dict[str, str]
    announced: bool
    sent: int


class Remembered(msgspec.Struct):
    """What the Deployment controller knows of its size writes of a ReplicaSet: `rv` is the one they were made for."""

    low: int
    high: int
    open: bool
    rv: int
    since: int


class Request(msgspec.Struct):
    """A create or a delete (of `version`) of a pod, without an answer; `lands`: it is still under way."""

    pod: int
    delete: bool
    version: int
    sent: int
    lands: bool = True


class Live:
    """A ReplicaSet as the API has it, its pods, and what its controller knows."""

    def __init__(self, replicaset: ReplicaSet, rv: int, template: str) -> None:
        self.object, self.rv, self.template = replicaset, rv, template
        self.pods: dict[int, Running] = {}
        self.seen, self.seen_rv = replicaset, rv
        self.seen_pods: dict[int, Running] = {}
        self.requests: list[Request] = []
        self.created: set[int] = set()  # answered, not seen yet
        self.deleted: set[int] = set()
        self.statuses: list[tuple[int, ReplicaSetStatus]] = []

    def active(self) -> list[Running]:
        return [pod for pod in self.pods.values() if not pod.ending]

    def available(self) -> int:
        return sum(pod.available for pod in self.active())

    def look(self) -> None:
        """Its controller's cache follows."""
        self.seen, self.seen_rv = self.object, self.rv

    def look_at_pods(self) -> None:
        self.seen_pods = {number: msgspec.structs.replace(pod) for number, pod in self.pods.items()}


class World:
    """One run. `random` decides everything; `floor_debt` is how many pods may be missing for other reasons than a
    rollout: they were lost, were not available when it took them, or were scaled away.
    """

    def __init__(self, random: Random, deployment: Deployment) -> None:
        self.random, self.now, self.numbers = random, 0, 0
        self.deployment = self.seen = deployment
        self.live: dict[str, Live] = {}
        self.cached: dict[str, tuple[int, ReplicaSet]] = {}
        self.memory: dict[str, Remembered] = {}
        self.min_rv: dict[str, int] = {}
        self.puts: list[Put] = []
        self.broken: set[str] = set()  # templates whose pods never become available
        self.refused: set[str] = set()  # templates whose pods are never created, without an answer that says so
        self.specs = [deployment]
        self.lost: set[tuple[str, int]] = set()
        self.floor_debt = 0
        self.turns_done = 0

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    # -- the Deployment controller

    def turn(self) -> None:
        """One turn on what is cached; it may be killed before any of its requests."""
        if any(self.cached.get(uid, (0,))[0] < rv for uid, rv in self.min_rv.items()):
            return
        self.min_rv.clear()
        if not self.resolve():
            return
        seen = with_fields(
            self.seen, status=DeploymentStatus(sum(rs.status.replicas for _, rs in self.cached.values()))
        )
        rollout = self.rollout(seen)
        writes = {uid: SizeWrite(each.low, each.high, each.open) for uid, each in self.memory.items()}
        scaled = seen.paused or scaling.is_scaling(seen, rollout)
        step = self.decide(seen, rollout, writes, scaled)
        self.turns_done += 1
        killed = self.random.random() < 0.1
        for update in step.updates:
            if update.replicas < update.replicaset.replicas:
                self.account(update, scaled)
            self.send(update.replicaset, update.replicas, (update.low, update.high), dict(update.annotations), killed)
        if step.may_create:
            self.create(seen, rolling.size_of_new(seen, rollout, writes), killed)

    def decide(self, seen: Deployment, rollout: Rollout, writes: sizes.SizeWrites, scaled: bool) -> sizes.Step:
        """By the order of a Deployment's sync."""

        def of_strategy(pods: tuple[Pod, ...] | None) -> sizes.Step:
            if scaled:
                return scaling.scale(seen, rollout, writes, pods)
            if seen.strategy == RECREATE:
                return recreate.step(seen, rollout, writes, pods)
            return sizes.Step(may_create=True) if rollout.new is None else rolling.roll(seen, rollout, writes)

        step = of_strategy(None)
        return of_strategy(self.look()) if step.wants_pods else step

    def rollout(self, seen: Deployment) -> Rollout:
        ordered = sorted((rs for _, rs in self.cached.values()), key=lambda each: each.created_ms)
        new = next((each for each in ordered if each.template_digest == seen.template_digest), None)
        return Rollout(new, tuple(each for each in ordered if each is not new))

    def look(self) -> tuple[Pod, ...]:
        return tuple(
            Pod(
                "default",
                f"p{n}",
                phase="Running",
                owner_refs=(OwnerRef("apps/v1", "ReplicaSet", "", uid, True),),
                uid=f"p{n}",
            )
            for uid, live in self.live.items()
            for n in live.pods
        )

    def resolve(self) -> bool:
        """What the cache and the time tell of size writes. False: the cache has to pass something first."""
        for uid, each in list(self.memory.items()):
            rv, replicaset = self.cached[uid]
            if each.open and rv > each.rv:
                each.open = False
            elif each.open and self.now - each.since > BOUND:
                if self.live[uid].rv != each.rv:
                    self.min_rv[uid] = self.live[uid].rv
                    return False
                each.open = False
            if not each.open and replicaset.status.observed_generation >= replicaset.generation:
                del self.memory[uid]
        return True

    def send(
        self, replicaset: ReplicaSet, size: int, bounds: tuple[int, int], annotations: dict[str, str], killed: bool
    ) -> None:
        rv = self.cached[replicaset.uid][0]
        announced = size != replicaset.replicas
        if announced:
            self.memory[replicaset.uid] = Remembered(*bounds, True, rv, self.now)
        if not killed or self.random.random() < 0.3:
            self.puts.append(Put(replicaset.uid, rv, size, annotations, announced, self.now))

    def create(self, seen: Deployment, size: int, killed: bool) -> None:
        uid = f"uid-{seen.template_digest}"
        if uid in self.live:
            self.min_rv[uid] = self.live[uid].rv  # AlreadyExists
            return
        rv = self.number()
        made = sized(
            seen.template_digest,
            0,
            created_ms=rv,
            template_digest=seen.template_digest,
            observed=0,
            annotations=remembered_sizes(seen),
        )
        self.live[uid] = Live(made, rv, seen.template_digest)
        if killed:
            return
        self.cached[uid] = rv, made
        if size:
            self.send(made, size, (0, size), {}, killed=self.random.random() < 0.1)

    def account(self, update: Any, scaled: bool) -> None:
        """Pods that this may take though the floor needs them, as upstream does."""
        before = update.replicaset
        if scaled:
            self.floor_debt += before.replicas - update.replicas
        else:
            self.floor_debt += min(before.replicas - update.replicas, max(0, before.replicas - before.status.available))

    # -- requests land

    def land_put(self, put: Put, lost: bool = False) -> None:
        """The API takes it or refuses it; the answer may be lost."""
        self.puts.remove(put)
        live = self.live[put.uid]
        if live.rv == put.rv:
            live.rv = self.number()
            changed = put.replicas != live.object.replicas
            live.object = with_fields(
                live.object,
                replicas=put.replicas,
                generation=live.object.generation + changed,
                annotations={**live.object.annotations, **put.annotations},
            )
        if lost:
            return
        known = self.memory.get(put.uid)
        if put.announced and known is not None and known.rv == put.rv:
            known.open = False
        self.min_rv[put.uid] = max(live.rv, self.min_rv.get(put.uid, 0))

    def land_status(self, live: Live) -> None:
        rv, status = live.statuses.pop(0)
        if live.rv == rv:
            live.rv = self.number()
            live.object = with_fields(live.object, status=status)

    def land_request(self, live: Live, request: Request, lost: bool = False) -> None:
        request.lands = False
        if request.delete:
            pod = live.pods.get(request.pod)
            if pod is not None and not pod.ending and pod.version == request.version:
                was_available, pod.ending = pod.available, True
                if was_available:
                    self.check_floor()
        elif live.template in self.refused:
            return
        else:
            live.pods[request.pod] = Running()
        if not lost:
            live.requests.remove(request)
            (live.deleted if request.delete else live.created).add(request.pod)

    # -- the ReplicaSet controller

    def turn_of(self, live: Live) -> None:
        """One turn on what it sees: status, creates, deletes."""
        seen, size = live.seen_pods, live.seen.replicas
        active = {number: pod for number, pod in seen.items() if not pod.ending}
        live.requests = [each for each in live.requests if not self.is_known(live, each, seen)]
        live.created = {number for number in live.created if number not in seen and number in live.pods}
        live.deleted = {
            number for number in live.deleted if number in active and number in live.pods and live.pods[number].ending
        }
        satisfied = not live.created and not live.deleted
        creates = [each.pod for each in live.requests if not each.delete]
        deletes = {each.pod for each in live.requests if each.delete} & active.keys()
        may_observe = self.observes(live, satisfied)
        observed = live.seen.generation if may_observe else live.seen.status.observed_generation
        available = sum(pod.available for pod in active.values())
        status = ReplicaSetStatus(len(active), len(active), available, available, None, observed)
        if status != live.seen.status:
            live.statuses.append((live.seen_rv, status))
        if not satisfied:
            return
        if len(active) < size:
            for _ in range(size - len(active) - len(creates)):
                live.requests.append(Request(self.number(), False, 0, self.now))
        else:
            staying = sorted((pod.available, -number) for number, pod in active.items() if number not in deletes)
            for _, number in staying[: max(0, len(active) - size - len(deletes))]:
                live.requests.append(Request(-number, True, active[-number].version, self.now))

    def observes(self, live: Live, satisfied: bool) -> bool:
        """Whether the status may say that its generation was acted on."""
        if not satisfied or any(each.delete for each in live.requests):
            return False
        active = sum(not pod.ending for pod in live.seen_pods.values())
        return not live.requests or active + len(live.requests) <= live.seen.replicas

    def is_known(self, live: Live, request: Request, seen: dict[int, Running]) -> bool:
        """Whether the cache shows what became of it, or its time is over: then a look tells what to wait for."""
        pod = seen.get(request.pod)
        if request.delete:
            shown = pod is None or pod.ending or pod.version > request.version
        else:
            shown = pod is not None
        again = not request.delete and live.template in self.refused and len(live.requests) <= live.seen.replicas
        over = not request.lands and not again and self.now - request.sent > BOUND
        if over and not shown:
            (live.deleted if request.delete else live.created).add(request.pod)
        return shown or over

    # -- what must hold

    def check_floor(self) -> None:
        """An available pod was just taken away: enough stay."""
        floor = min(limits.min_available(spec) for spec in self.specs)
        available = sum(live.available() for live in self.live.values())
        missing = self.floor_debt + len(self.lost)
        if available + missing < floor:
            raise Violation(f"{available} pods are available, {floor} have to be, {missing} are missing anyway")

    def check(self) -> None:
        """After every step."""
        most = max(limits.max_pods(spec) for spec in self.specs)
        pods = sum(len(live.active()) for live in self.live.values())
        if pods > most:
            raise Violation(f"{pods} pods, {most} are allowed")
        if all(spec.strategy == RECREATE for spec in self.specs):
            templates = {live.template for live in self.live.values() if live.pods}
            if len(templates) > 1:
                raise Violation(f"pods of {templates} at once")
        if self.at_rest():
            self.specs, self.floor_debt = [self.deployment], 0
            self.lost.clear()

    def at_rest(self) -> bool:
        """Everything is as wanted, and everybody knows."""
        wanted = self.deployment
        if wanted is not self.seen or wanted.paused or self.puts or self.memory or self.min_rv:
            return False
        if wanted.template_digest not in {live.template for live in self.live.values()}:
            return False
        for uid, live in self.live.items():
            size = wanted.replicas if live.template == wanted.template_digest else 0
            counts = (live.object.replicas, len(live.pods), len(live.active()), live.available())
            status = live.object.status
            known = (status.replicas, status.available, status.observed_generation, self.cached.get(uid, (0,))[0])
            if counts != (size, size, size, size) or known != (size, size, live.object.generation, live.rv):
                return False
            if live.requests or live.statuses or live.created or live.deleted:
                return False
        return True
