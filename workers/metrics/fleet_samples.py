"""The fleet-wide figures as samples."""

from __future__ import annotations

from oarlock.workers.metrics.fleet_reader import FleetFigures
from oarlock.workers.metrics.latest import Look
from oarlock.workers.metrics.samples import Samples

PHASES = ("OPEN", "DRAIN", "HELD", "NONE")


def put_look(samples: Samples, look: Look) -> None:
    """All that a look at Redis gave; only that it gave nothing, where it did not answer."""
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
    for resource, age_s in fleet.watermark_age_s.items():
        samples.put("oarlock_watermark_age_seconds", age_s, resource, shard)
    for resource, count in fleet.objects.items():
        samples.put("oarlock_cached_objects", count, resource, shard)
    for queue, of in fleet.queues.items():
        samples.put("workqueue_depth", of.queued, queue, shard)
        samples.put("workqueue_adds_total", of.adds, queue, shard)
        samples.put("oarlock_oldest_queued_seconds", of.oldest_s, queue, shard)
        samples.put("oarlock_keys_in_work", of.in_work, queue, shard)
        samples.put("oarlock_keys_delayed", of.delayed, queue, shard)
        samples.put("oarlock_keys_parked", of.parked, queue, shard)
        samples.put("oarlock_keys_crashing", of.crashing, queue, shard)
        samples.put("oarlock_keys_failing", of.failing, queue, shard)
        samples.put("oarlock_records_unanswered", of.unanswered, queue, shard)
        samples.put("oarlock_record_age_seconds", of.record_age_s, queue, shard)
