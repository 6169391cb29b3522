"""The last look at the fleet's figures, and its samples. However often it is scraped, Redis is read once a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oarlock.broker.connection.client import connect
from oarlock.broker.values.errors import BrokerUnreachable, EpochOver
from oarlock.workers.metrics.fleet_reader import FleetFigures, FleetReader
from oarlock.workers.metrics.samples import Samples
from oarlock.workers.process.settings import Settings

FRESH_S = 1.0
PHASES = ("OPEN", "DRAIN", "HELD", "NONE")
TIMEOUT_S = 1.0
"""A scrape waits ten seconds, a probe often one."""


@dataclass(frozen=True, slots=True)
class Look:
    """``fleets``: one a shard; None where Redis did not answer: ``took_s`` is then how long it kept silent."""

    fleets: tuple[FleetFigures, ...] | None
    took_s: float


class Latest:
    """Not for several threads at once."""

    def __init__(self, readers: Sequence[FleetReader], clock_s: Callable[[], float] = time.monotonic) -> None:
        self._readers, self._clock_s = readers, clock_s
        self._look: Look | None = None
        self._until_s = 0.0

    def look(self) -> Look:
        """What Redis shows, no older than FRESH_S. Takes as long as the client's timeout where Redis is silent."""
        begun_s = self._clock_s()
        if self._look is not None and begun_s < self._until_s:
            return self._look
        fleets: tuple[FleetFigures, ...] | None
        try:
            fleets = tuple(reader.read() for reader in self._readers)
        except (BrokerUnreachable, EpochOver):
            fleets = None  # oarlock_redis_up and readyz show it
        ended_s = self._clock_s()
        self._look, self._until_s = Look(fleets, ended_s - begun_s), ended_s + FRESH_S
        return self._look


def open_latest(settings: Settings) -> Latest:
    """Of the shard that a process serves, with a client of its own. Connecting happens at the first look."""
    client = connect(settings.redis_url, timeout_s=TIMEOUT_S, shard=settings.tag, tls=settings.redis_tls)
    return Latest([FleetReader(client, settings.tag)])


def put_look(samples: Samples, look: Look) -> None:
    """Add every figure of a look at Redis; where Redis did not answer, only that."""
    samples.put("oarlock_redis_up", int(look.fleets is not None))
    samples.put("oarlock_redis_read_seconds", look.took_s)
    for fleet in look.fleets or ():
        _put_fleet(samples, fleet)


def _put_fleet(samples: Samples, fleet: FleetFigures) -> None:
    shard = fleet.shard
    phase = fleet.phase or "NONE"
    samples.put("oarlock_epoch", fleet.epoch, shard)
    for each in PHASES:
        samples.put("oarlock_epoch_phase", int(each == phase), each, shard)
    samples.put("oarlock_epoch_intact", int(fleet.intact), shard)
    samples.put("oarlock_held", int(phase == "HELD"), shard)
    samples.put("oarlock_workers_registered", fleet.registered, shard)
    samples.put("oarlock_workers_idle", fleet.idle, shard)
    samples.put("oarlock_redis_memory_bytes", fleet.memory_bytes, shard)
    samples.put("oarlock_redis_memory_max_bytes", fleet.memory_max_bytes, shard)
    samples.put("oarlock_history_bytes", fleet.history_bytes, shard)
    samples.put("oarlock_pauses", fleet.pauses, shard)
    samples.put("oarlock_api_budget_qps", fleet.budget[0], shard)
    samples.put("oarlock_api_budget_max_qps", fleet.budget[1], shard)
    for resource, age_s in fleet.watermark_age_s.items():
        samples.put("oarlock_watermark_age_seconds", age_s, resource, shard)
    for resource, count in fleet.objects.items():
        samples.put("oarlock_cached_objects", count, resource, shard)
    for queue, figures in fleet.queues.items():
        for name, value in figures.items():
            samples.put(name, value, queue, shard)
