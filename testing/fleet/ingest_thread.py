"""The real ingestor on a thread: it wins the fleet's Lease, begins the epoch, lists, watches and publishes."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client
from oarlock.controllers.registry import WATCHED
from oarlock.workers.epoch.coordinator import EpochCoordinator
from oarlock.workers.epoch.fleet_lease import ApiLease, lease_name
from oarlock.workers.epoch.redis_side import EpochStore
from oarlock.workers.ingest.api_lister_watcher import ApiListerWatcher
from oarlock.workers.ingest.ingestor import Ingestor
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.reflector import Reflector
from oarlock.workers.ingest.relist import new_generation
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.settings import Settings
from oarlock.workers.process.wakeup import Wakeup

CLOSE_S = 1.0


class IngestThread:
    """``on_open`` is told each epoch in which turns may begin, on this thread. ``run`` raises FleetRefused."""

    def __init__(
        self,
        epochs: EpochStore,
        config: ClusterConfig,
        settings: Settings,
        clock: Clock,
        io: IoLoop,
        on_open: Callable[[int], None],
    ) -> None:
        self._clock, self._io, self._wakeup, self._stopping = clock, io, Wakeup(), False
        client = self._client = Client(config, role="ingestor", request_timeout_s=settings.request_timeout_ms / 1000)
        owners = KnownOwners()
        reflectors = [
            Reflector(
                resource,
                ApiListerWatcher(client, resource, io, self._wakeup.set, clock),
                owners,
                nonce=new_generation,
                random=random.Random(),
            )
            for resource in WATCHED.values()
        ]
        lease = ApiLease(io, client.lease(settings.lease_namespace, lease_name("0")))
        name = f"ingestor-{secrets.token_hex(4)}"
        coordinator = EpochCoordinator(epochs, lease, settings, clock, name, wake=self._wakeup.set)
        self._ingestor = Ingestor(coordinator, reflectors, owners, on_open)

    def stop(self) -> None:
        self._stopping = True
        self._wakeup.set()

    def run(self) -> None:
        """Rounds until stopped."""
        try:
            while not self._stopping:
                due_ms = self._ingestor.round(self._clock.mono_ms())
                if due_ms > 0 and not self._stopping:
                    self._wakeup.wait(due_ms / 1000)
        finally:
            self._ingestor.close()
            self._io.run(self._client.close(), CLOSE_S)
