"""Ingestors over a real Redis, a scripted API and a clock moved by hand; each may be killed between any two calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import redis

from oarlock.broker import epoch, keys
from oarlock.broker.connection.client import RunGuard, _Client
from oarlock.broker.epoch import Seen
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import ClaimLimits, Idle, LoadSpec
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.cluster.event_correlator import Note, ObjectRef
from oarlock.controllers.objects.model import controller_of
from oarlock.controllers.registry import WATCHED
from oarlock.workers.epoch.coordinator import EpochCoordinator
from oarlock.workers.epoch.redis_side import RedisSide
from oarlock.workers.ingest.act_events import ActEvents
from oarlock.workers.ingest.ingestor import Ingestor
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.reflector import Reflector
from oarlock.workers.ingest.standby import ENOUGH_EVENTS, Standby
from oarlock.workers.ingest.upstream_detector import UpstreamDetector
from oarlock.workers.ingest.upstream_guard import UpstreamGuard
from oarlock.workers.process.settings import Settings
from tests.manual_clock import ManualClock
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, ScriptedApi, ScriptedLease, ScriptedSource

CLOCK_KEY = "oarlock:test-clock"
TEST_CLOCK = f"return tonumber(redis.call('GET', '{CLOCK_KEY}'))"
SETTINGS = Settings()
LEASE = ObjectRef("coordination.k8s.io/v1", "Lease", "kube-system", "oarlock", "")


class Killed(BaseException):
    """SIGKILL at this point."""


class FaultyClient(_Client):
    """Kills its process, or loses the connection, at a chosen command: ``fault`` is asked before and after each."""

    fault: Callable[[bool], None] | None = None

    def execute_command(self, *args: Any, **options: Any) -> Any:
        if self.fault is not None:
            self.fault(False)
        reply = super().execute_command(*args, **options)
        if self.fault is not None:
            self.fault(True)
        return reply

    def in_one_go(self, calls: Any) -> list[Any]:
        if self.fault is not None:
            self.fault(False)
        answers = super().in_one_go(calls)
        if self.fault is not None:
            self.fault(True)
        return answers

    def send(self, calls: Any) -> Callable[[], list[Any]]:
        if self.fault is not None:
            self.fault(False)
        later = super().send(calls)

        def answers() -> list[Any]:
            found = later()
            if self.fault is not None:
                self.fault(True)
            return found

        return answers


class Server:
    """The Redis of a test. ``run``: its run id as the processes see it; another one is a restart."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.admin = self.client()
        self.run = ""

    def reset(self, now_ms: int) -> None:
        self.admin.flushall()
        self.run = ""
        self.clock(now_ms)

    def clock(self, now_ms: int) -> None:
        self.admin.set(CLOCK_KEY, now_ms)

    def client(self) -> FaultyClient:
        return FaultyClient(redis.ConnectionPool.from_url(self.url, protocol=2))

    def cache(self, number: int, resource: str) -> dict[str, tuple[str, bytes]]:
        """Key -> (resourceVersion, blob) as it is read now."""
        return {key: (each.rv, each.blob) for key, each in Inspector(self.admin, number).objects(resource)}

    def mark(self, number: int, resource: str) -> str | None:
        mark = self.admin.hget(keys.Keys(number).of("watermark"), resource)
        return mark.decode() if mark is not None else None

    def epoch(self) -> Seen:
        return self._as_seen(epoch.current(self.admin))

    def _as_seen(self, seen: Seen) -> Seen:
        return Seen(seen.epoch, self.run or seen.run, seen.bootstrapped_on, seen.phase)


class Side(RedisSide):
    """RedisSide, with the run id that the test gives the server."""

    def __init__(self, server: Server, client: redis.Redis) -> None:
        super().__init__(client, RunGuard(), clock=TEST_CLOCK)
        self._server, self._raw = server, client
        self.swept: list[int] = []

    def look(self) -> Seen:
        return self._server._as_seen(super().look())

    def broker(self, seen: Seen) -> RedisBroker:
        return RedisBroker(self._raw, seen.epoch, clock=TEST_CLOCK)

    def bootstrap(self, number: int) -> None:
        super().bootstrap(number)
        if self._server.run:
            self._raw.set(keys.base(number) + "run", self._server.run)

    def sweep(self, number: int) -> None:
        self.swept.append(number)


class Process:
    """One ingestor process."""

    def __init__(self, rig: Rig, name: str, **coordinator: Any) -> None:
        self.name, self.rig = name, rig
        self.client = rig.server.client()
        self.sources = {each: ScriptedSource(rig.api, each) for each in (PODS, REPLICASETS)}
        self.owners = KnownOwners()
        self.detector = UpstreamDetector(rig.clock.wall_ms)
        self.reflectors = {
            each: Reflector(
                WATCHED[each],
                self.sources[each],
                self.owners,
                nonce=lambda: f"g{rig.rng.getrandbits(48):x}",
                random=rig.rng,
                detector=self.detector if WATCHED[each].adoptable else None,
                standby=Standby(rig.standby_events),
            )
            for each in self.sources
        }
        self.side = Side(rig.server, self.client)
        settings, anew = coordinator.pop("settings", rig.settings), coordinator.pop("anew", False)
        self.coordinator = EpochCoordinator(self.side, rig.lease, settings, rig.clock, name, **coordinator)
        self.opened: list[int] = []
        guard = UpstreamGuard(self.detector, settings.alongside_upstream)
        self.notes: list[Note] = []
        """What it told of what people did."""
        self.ingestor = Ingestor(
            self.coordinator,
            list(self.reflectors.values()),
            self.owners,
            self.opened.append,
            guard,
            anew=anew,
            acts=ActEvents(self.notes.append, LEASE, "host"),
        )

    def round(self) -> int:
        return self.ingestor.round(self.rig.clock.mono_ms())

    def catch_up(self) -> None:
        for source in self.sources.values():
            source.catch_up()


class Rig:
    """A cluster, a Redis, any number of ingestors, one worker."""

    def __init__(
        self, server: Server, seed: int = 0, settings: Settings = SETTINGS, standby_events: int = ENOUGH_EVENTS
    ) -> None:
        self.server, self.settings, self.standby_events = server, settings, standby_events
        self.rng = random.Random(seed)
        self.clock = ManualClock()
        self.api = ScriptedApi()
        self.lease = ScriptedLease(self.api)
        server.reset(self.clock.wall_ms())
        self.processes: list[Process] = []
        self.turns: dict[str, tuple[int, int]] = {}
        """Key -> the watermarks (pods, ReplicaSets) that its last turn saw."""
        self._worker: tuple[int, RedisBroker] | None = None
        self._claims = 0

    def start(self, name: str = "a", **coordinator: Any) -> Process:
        self.processes.append(Process(self, name, **coordinator))
        return self.processes[-1]

    def advance(self, by_ms: int) -> None:
        self.clock.advance(by_ms)
        self.server.clock(self.clock.wall_ms())

    def settle(self, *processes: Process, rounds: int = 400) -> None:
        """Rounds without faults until nothing is left to do at this moment."""
        for process in processes or tuple(self.processes):
            for _ in range(rounds):
                if process.round() > 0:
                    break
            else:
                raise AssertionError(f"{process.name} is busy for ever")

    def run_for(self, ms: int, *processes: Process, step_ms: int = 100) -> None:
        """Let time pass."""
        for _ in range(0, ms, step_ms):
            self.advance(step_ms)
            self.settle(*processes)

    def open(self, *processes: Process) -> None:
        """Bring processes up to an open epoch."""
        self.settle(*processes)
        for _ in range(300):
            if all(process.coordinator.phase == "OPEN" for process in processes or tuple(self.processes)):
                return
            self.run_for(100, *processes)
        raise AssertionError([process.ingestor.status(0) for process in self.processes])

    # -- checks ----------------------------------------------------------------------------------------------------

    def check_cache(self) -> int:
        """The cache of each resource is the API at its watermark. Returns how many were there to be checked."""
        number, checked = self.server.epoch().epoch, 0
        for resource in (PODS, REPLICASETS):
            mark = self.server.mark(number, resource)
            if mark is not None:
                checked += 1
                assert self.server.cache(number, resource) == self.api.cached_at(resource, int(mark)), (resource, mark)
        return checked

    def work(self) -> int:
        """Take every key queued and end its turn well, noting what it saw. Returns how many turns there were."""
        seen = self.server.epoch()
        if seen.phase != "OPEN":
            return 0
        if self._worker is None or self._worker[0] != seen.epoch:
            self._worker = seen.epoch, RedisBroker(self.server.admin, seen.epoch, clock=TEST_CLOCK)
            self._worker[1].register(f"w{seen.epoch}", "s", ["replicaset"])
            self.turns.clear()
        broker, count = self._worker[1], 0
        spec = LoadSpec("replicaset", REPLICASETS, ((PODS, "owner", "uid"), (PODS, "orphan", "wanted")))
        while True:
            self._claims += 1
            batch = broker.claim(
                f"w{seen.epoch}", f"n{self._claims}", [spec], ClaimLimits(lease_ms=5_000, drain_ms=1_000)
            )
            if isinstance(batch, Idle):
                return count
            marks = tuple(int(self.server.mark(seen.epoch, each) or 0) for each in (PODS, REPLICASETS))
            for claim in batch.claims:
                self.turns[claim.key] = marks[0], marks[1]
            broker.finish([Finish("replicaset", each.key, each.nonce, Verdict.OK) for each in batch.claims])
            count += len(batch.claims)

    def check_turns(self) -> int:
        """Nothing was lost: the last turn of each ReplicaSet saw what there is now. Returns how many pods that were.

        It may still have seen an orphan that has left since: nobody counts those.
        """
        checked = 0
        for key, raw in self.api.raw_at(REPLICASETS, self.api.rv).items():
            rv, owner = WATCHED[REPLICASETS].from_json(raw)
            turn = self.turns.get(key)
            assert turn is not None, f"{key} had no turn"
            assert turn[1] >= int(rv), f"{key}: its own change at {rv} was never looked at, only {turn}"
            owned, orphans = self._pods_of(owner, self.api.rv)
            owned_then, orphans_then = self._pods_of(owner, turn[0])
            assert owned == owned_then, f"{key}: its pods have changed since its last turn at {turn}"
            missed = {pod: at for pod, at in orphans.items() if orphans_then.get(pod) != at}
            assert not missed, f"{key}: nobody told it of the orphans {missed}, its last turn was at {turn}"
            checked += len(owned) + len(orphans)
        return checked

    def _pods_of(self, owner: Any, rv: int) -> tuple[dict[str, str], dict[str, str]]:
        """Name -> resourceVersion of the pods it controls, and of the orphans it selects."""
        owned, orphans = {}, {}
        for raw in self.api.raw_at(PODS, rv).values():
            at, pod = WATCHED[PODS].from_json(raw)
            if pod.namespace != owner.namespace:
                continue
            ref = controller_of(pod)
            if ref is not None and ref.name == owner.name:
                owned[pod.name] = at
            elif ref is None and pod.labels and owner.selector.matches(pod.labels):
                orphans[pod.name] = at
        return owned, orphans
