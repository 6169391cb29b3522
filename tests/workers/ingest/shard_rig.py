"""Ingestors of shards, of several divisions at once too, over one Redis, a scripted API and a clock of the test."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import redis

from oarlock.broker import epoch, keys
from oarlock.broker.connection.client import RunGuard
from oarlock.broker.epoch import Seen
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.objects import Cached
from oarlock.controllers.registry import WATCHED
from oarlock.workers.epoch.coordinator import EpochCoordinator, FleetRefused
from oarlock.workers.epoch.fleet_lease import FleetLease
from oarlock.workers.epoch.redis_side import RedisSide
from oarlock.workers.epoch.shard_layout import Layout
from oarlock.workers.ingest.ingestor import Ingestor
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.reflector import Reflector
from oarlock.workers.ingest.shard_lister_watcher import Ours, ShardListerWatcher
from oarlock.workers.process.settings import Settings
from oarlock.workers.process.shards import names
from tests.manual_clock import ManualClock
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, ScriptedApi, ScriptedLease, ScriptedSource
from tests.workers.ingest.ingest_rig import TEST_CLOCK, Server

QUICK = Settings(lease_ms=1_000, renew_every_ms=300, request_timeout_ms=500, send_margin_ms=100)
"""D is three seconds."""
STEP_MS = 100
RESOURCES_HERE = [PODS, REPLICASETS]


class Side(RedisSide):
    """RedisSide with the clock of the test. Notes which division bootstrapped an epoch."""

    def __init__(self, rig: ShardRig, client: redis.Redis, shard: str, shards: int) -> None:
        super().__init__(client, RunGuard(), shard=shard, clock=TEST_CLOCK)
        self._rig, self._mine, self._shards = rig, shard, shards

    def broker(self, seen: Seen) -> RedisBroker:
        return RedisBroker(self._rig.client, seen.epoch, shard=self._mine, clock=TEST_CLOCK)

    def bootstrap(self, number: int) -> None:
        super().bootstrap(number)
        self._rig.bootstrapped_by[self._mine, number] = self._shards

    def sweep(self, number: int) -> None:
        pass


class Process:
    """One ingestor of one shard. ``refused``: why it ended."""

    def __init__(self, rig: ShardRig, shard: str, shards: int, name: str) -> None:
        self.rig, self.shard, self.shards, self.name = rig, shard, shards, name
        settings = replace(QUICK, shards=shards, shard=shard if shards > 1 else "")
        self.sources = {each: ScriptedSource(rig.api, each) for each in RESOURCES_HERE}
        self.owners = KnownOwners()
        ours = Ours(shard, shards)
        self.reflectors = {
            each: Reflector(
                WATCHED[each],
                source if shards == 1 else ShardListerWatcher(source, ours, rig.clock.mono_ms),
                self.owners,
                nonce=lambda: f"g{rig.rng.getrandbits(48):x}",
                random=rig.rng,
            )
            for each, source in self.sources.items()
        }
        root = rig.lease("0")
        layout = Layout(root, settings.fleet_id, shards, settings.lease_ms // 2) if shard != "0" else None
        side = Side(rig, rig.client, shard, shards)
        self.coordinator = EpochCoordinator(side, rig.lease(shard), settings, rig.clock, name, layout=layout)
        self.ingestor = Ingestor(self.coordinator, list(self.reflectors.values()), self.owners)
        self.refused = ""

    def round(self) -> int:
        """As ``Ingestor.round``; one that was refused does nothing any more."""
        if self.refused:
            return STEP_MS
        for source in self.sources.values():
            source.catch_up()
        try:
            return self.ingestor.round(self.rig.clock.mono_ms())
        except FleetRefused as refused:
            self.refused = str(refused)
            return STEP_MS


@dataclass(frozen=True)
class Shown:
    """What Redis shows of a shard; ``division``: into how many who began this epoch divided, 0 for nobody."""

    epoch: int
    phase: str
    intact: bool
    division: int

    @property
    def at_work(self) -> bool:
        return self.intact and self.phase == "OPEN"


class ShardRig:
    """A cluster, one Redis for all shards, a Lease for each of them, any number of ingestors."""

    def __init__(self, server: Server, seed: int = 0) -> None:
        self.server, self.client = server, server.client()
        self.rng = random.Random(seed)
        self.clock, self.api = ManualClock(), ScriptedApi()
        server.reset(self.clock.wall_ms())
        self.leases: dict[str, ScriptedLease] = {}
        self.bootstrapped_by: dict[tuple[str, int], int] = {}
        self.processes: list[Process] = []

    def lease(self, shard: str) -> ScriptedLease:
        return self.leases.setdefault(shard, ScriptedLease(self.api))

    def said(self, shard: str = "0") -> FleetLease:
        """What a shard's Lease says."""
        held = self.lease(shard).held
        assert held is not None
        return FleetLease.of(held.spec)

    def start(self, shard: str, shards: int, name: str = "") -> Process:
        self.processes.append(Process(self, shard, shards, name or f"{shard}of{shards}-{len(self.processes)}"))
        return self.processes[-1]

    def start_all(self, shards: int) -> list[Process]:
        return [self.start(shard, shards) for shard in names(shards)]

    def shown(self, shard: str) -> Shown:
        seen = epoch.current(self.server.admin, shard)
        return Shown(seen.epoch, seen.phase, seen.intact, self.bootstrapped_by.get((shard, seen.epoch), 0))

    def at_work(self) -> dict[str, int]:
        """Shard -> the division it is of, for those where turns may begin."""
        return {shard: shown.division for shard in names(3) if (shown := self.shown(shard)).at_work}

    def settle(self, *processes: Process, rounds: int = 400) -> None:
        for process in processes or tuple(self.processes):
            for _ in range(rounds):
                if process.round() > 0:
                    break
            else:
                raise AssertionError(f"{process.name} is busy for ever")

    def pass_time(self, ms: int = STEP_MS) -> None:
        self.clock.advance(ms)
        self.server.clock(self.clock.wall_ms())

    def run_for(self, ms: int, *processes: Process) -> None:
        for _ in range(0, ms, STEP_MS):
            self.pass_time()
            self.settle(*processes)

    def open(self, *processes: Process, limit_ms: int = 20_000) -> int:
        """Bring processes up to open epochs. Returns how long it took, in ms."""
        began_ms = self.clock.mono_ms()
        self.settle(*processes)
        while not all(process.coordinator.phase == "OPEN" for process in processes):
            assert self.clock.mono_ms() - began_ms < limit_ms, [(each.name, each.refused) for each in processes]
            self.run_for(STEP_MS, *processes)
        return self.clock.mono_ms() - began_ms

    def cache(self, shard: str, resource: str) -> dict[str, str]:
        """Key -> resourceVersion as the shard's cache has it now."""
        of_epoch = keys.Keys(self.shown(shard).epoch, shard)
        generation: Any = self.server.admin.hget(of_epoch.of("generation"), resource) or b"0"
        found: Any = self.server.admin.hgetall(of_epoch.objects(resource, generation.decode()))
        return {key.decode(): Cached.parse(value).rv for key, value in found.items()}

    def mark(self, shard: str, resource: str) -> int:
        mark: Any = self.server.admin.hget(keys.Keys(self.shown(shard).epoch, shard).of("watermark"), resource)
        return int(mark)

    def worker(self, shard: str) -> RedisBroker:
        """What a worker of the shard's present epoch holds."""
        return RedisBroker(self.client, self.shown(shard).epoch, shard=shard, clock=TEST_CLOCK)
