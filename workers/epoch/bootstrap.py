"""Begins one epoch, in the ingestor that won the Lease: set Redis, wait for D, commit a list of each resource, open."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import StrEnum

from oarlock.broker.epoch import Seen, is_later
from oarlock.broker.protocol import Broker
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.workers.epoch.fleet_lease import FleetLease
from oarlock.workers.epoch.kept_pauses import restore
from oarlock.workers.epoch.redis_side import EpochStore
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.log_line import line
from oarlock.workers.process.shards import names

LOOK_EVERY_MS = 250

log = logging.getLogger("oarlock.ingest")


class Stage(StrEnum):
    """What the coordinator has to do with the Lease after a step."""

    ON = "on"  # nothing
    RENEW = "renew"  # renew it first: another ingestor may have taken it, so Redis must not be written now
    OPENED = "opened"  # turns may begin: write it into the Lease
    LOST = "lost"  # this attempt is over


class Bootstrap:
    """One attempt. ``drain_ms``: D, or 0 if no write of an earlier epoch can be in flight.

    ``broker`` is set as soon as Redis has the epoch. ``drained_ms``: when D will have passed; then it wants lists.
    """

    def __init__(self, redis: EpochStore, clock: Clock, epoch: int, drain_ms: int, fresh_ms: int) -> None:
        self._redis, self._clock, self._drain_ms, self._fresh_ms = redis, clock, drain_ms, fresh_ms
        self.epoch = epoch
        self.broker: Broker | None = None
        self.seen: Seen | None = None
        self.begun_ms = 0
        """When this process knew that Redis has the epoch."""
        self.drained_ms: int | None = None
        self.open = False
        self._committed: Sequence[str] | None = None
        self._look_due_ms = 0

    def drained(self, now_ms: int) -> bool:
        """Whether no write of an earlier epoch can land any more."""
        return self.drained_ms is not None and now_ms >= self.drained_ms

    def wants_lists(self, now_ms: int) -> bool:
        """Whether every resource has to be listed now."""
        return self.drained(now_ms) and self._committed is None

    def lists_committed(self, resources: Sequence[str]) -> None:
        """All of these lists have been committed."""
        self._committed = resources

    def step(
        self, now_ms: int, lease: FleetLease, confirmed_ms: int, may_swap: bool, settled_ms: int | None = None
    ) -> Stage:
        """Do the next thing. Raises BrokerUnreachable and EpochOver.

        ``confirmed_ms``: when the Lease was last proved to be ours. ``may_swap``: no request on it is under way.
        ``settled_ms``: when shard 0's Lease last confirmed our number of shards; None for shard 0, which need not ask.
        """
        if self.drained_ms is None or now_ms >= self._look_due_ms:
            # Redis first: if we cannot reach it we do not renew the Lease, and another ingestor takes over.
            self._look_due_ms = now_ms + LOOK_EVERY_MS
            if self._is_lost(self._redis.look(), lease):
                return Stage.LOST
        if not may_swap:
            return Stage.ON
        if now_ms - confirmed_ms >= self._fresh_ms:
            return Stage.RENEW
        if self.drained_ms is None:
            self._begin_in_redis(lease)
        elif self._committed is not None and (settled_ms is None or settled_ms >= self.begun_ms):
            self._open(self._committed)
            return Stage.OPENED
        return Stage.ON

    def _is_lost(self, seen: Seen, lease: FleetLease) -> bool:
        begun = seen.intact and (seen.epoch, seen.run) == (self.epoch, lease.run)
        lost = not begun and (self.drained_ms is not None or is_later(seen.epoch, self.epoch) or seen.run != lease.run)
        if lost:
            log.warning(line("bootstrap lost", epoch=self.epoch, shown=seen.epoch, run=seen.run[:8]))
        return lost

    def _begin_in_redis(self, lease: FleetLease) -> None:
        if lease.moving:  # D counts from the end of every epoch of the last division
            self._redis.end_others(names(max(lease.moving, lease.shards))[1:])
        self._redis.bootstrap(self.epoch)
        seen = self._redis.look()
        if not seen.intact or (seen.epoch, seen.run) != (self.epoch, lease.run):
            return  # it is another server by now: the next step sees that and gives up
        # Redis has answered, so it had the number before now: D may count from here.
        begun_ms, broker = self._clock.mono_ms(), self._redis.broker(seen)
        restore(broker, lease)  # if it fails, all of this is done once more
        self.begun_ms, self.drained_ms = begun_ms, begun_ms + self._drain_ms
        self.seen, self.broker = seen, broker
        self._redis.sweep(self.epoch)
        log.info(line("bootstrapped", epoch=self.epoch))

    def _open(self, resources: Sequence[str]) -> None:
        assert self.broker is not None
        missing = self.broker.open(resources)
        if missing:  # a bug: all were committed in this epoch
            raise BrokerUnreachable(f"open: {missing} has no watermark")
        self.open = True
