"""One ingestor: stays in the fleet's epoch and drives its reflectors, on one thread that never blocks for long.

Any number of ingestors may run; none leads. The broker skips what a second one does again. What a dead one leaves
undone the others find: unpublished lists by their cursor, an unrenewed Lease by its age.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from redis.exceptions import RedisError

from oarlock.broker.looks import hearing
from oarlock.broker.protocol import Broker
from oarlock.broker.values.errors import BrokerFull, BrokerUnreachable, EpochOver
from oarlock.workers.epoch.coordinator import EpochCoordinator
from oarlock.workers.epoch.fleet_lease import OPEN
from oarlock.workers.ingest.act_events import ActEvents
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.reflector import CHECK_EVERY_MS, Reflector
from oarlock.workers.ingest.relist import ApiWentBack
from oarlock.workers.ingest.upstream_guard import UpstreamGuard
from oarlock.workers.process.log_line import line
from oarlock.workers.signing.refusals import ObjectRefused

DEAF_MS = 75_000
"""A resource that was silent for longer counts as deaf; a watch is replaced after the same time."""
TELL_EVERY_MS = 250
PUBLISH_EVERY_MS = 1_000
PUBLISH_OBJECTS = 500
STATUS_EVERY_MS = 60_000
REPORT_EVERY_MS = 5_000
UNREACHABLE_MS = (50, 2_000)

log = logging.getLogger("oarlock.ingest")


@dataclass(frozen=True, slots=True)
class ReflectorStatus:
    """``heard_ms``: time since the API said anything about the resource; -1 for never. Events are this process's."""

    state: str
    position: str
    heard_ms: int
    applied: int
    skipped: int
    unreadable: int
    lists: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The state of an ingestor. ``epoch`` 0: it is in none."""

    name: str
    standing: str
    epoch: int
    phase: str
    reflectors: dict[str, ReflectorStatus]


class Ingestor:
    """``on_open`` is told each epoch in which turns may begin, once. Drive it with ``round``.

    ``anew``: list everything when it first joins an epoch. The cache there may be of another version of a user's
    controllers; a list writes it anew and queues every key. ``acts``: tells what people did, as events.
    """

    def __init__(
        self,
        coordinator: EpochCoordinator,
        reflectors: Sequence[Reflector],
        owners: KnownOwners,
        on_open: Callable[[int], None] = lambda epoch: None,
        guard: UpstreamGuard | None = None,
        *,
        anew: bool = False,
        acts: ActEvents | None = None,
    ) -> None:
        self._anew, self._acts = anew, acts
        self._coordinator, self._reflectors, self._owners, self._on_open = coordinator, reflectors, owners, on_open
        self._guard = guard
        self._broker: Broker | None = None
        self._listing_for = self._told_open = 0
        self._check_due_ms = self._publish_due_ms = self._status_due_ms = self._report_due_ms = 0
        self._pause_until_ms = self._tell_due_ms = 0
        self._pause_ms = self._lists = self._looks = 0
        self._refused = False
        self._deaf: set[str] = set()

    def round(self, now_ms: int) -> int:
        """Let everything do its next step. Returns ms until the next round is due, unless something wakes us earlier.

        Raises FleetRefused where this process must end.
        """
        if now_ms < self._pause_until_ms:
            return self._pause_until_ms - now_ms
        try:
            due_ms = self._work(now_ms)
        except EpochOver as error:
            self._coordinator.suspect(str(error))
            self._follow()
            return 0
        except ObjectRefused as error:
            log.error(line("cache distrusted", resource=error.resource, why=error, mend="all lists are read anew"))
            for reflector in self._reflectors:
                reflector.distrust(now_ms)
            return 0
        except ApiWentBack as error:
            log.critical(line("api went back", why=error))
            self._coordinator.suspect(str(error), unusable=True)
            self._follow()
            return 0
        except (BrokerUnreachable, BrokerFull, RedisError) as error:  # such as a right that is missing: it may be given
            if not self._refused:
                log.error(line("redis refuses", why=error))
            self._refused, self._looks = True, self._coordinator.looks
            shortest_ms, longest_ms = UNREACHABLE_MS
            self._pause_ms = min(longest_ms, self._pause_ms * 2) or shortest_ms
            self._pause_until_ms = now_ms + self._pause_ms
            return self._pause_ms
        self._pause_ms = 0
        # In no epoch it asks Redis now and then only: while a slot moves, each second round would seem to be answered.
        if self._refused and (self._broker is not None or self._coordinator.looks > self._looks):
            self._refused = False
            log.info(line("redis answers"))
        return due_ms

    def status(self, now_ms: int) -> Status:
        """For the log and for metrics."""
        reflectors = {
            reflector.name: ReflectorStatus(
                reflector.state,
                reflector.position,
                now_ms - reflector.lister_watcher.heard_ms() if reflector.lister_watcher.heard_ms() else -1,
                reflector.applier.counts.applied,
                reflector.applier.counts.skipped,
                reflector.projector.unreadable,
                reflector.lists,
            )
            for reflector in self._reflectors
        }
        coordinator = self._coordinator
        return Status(coordinator.name, coordinator.standing, coordinator.epoch, coordinator.phase, reflectors)

    def close(self) -> None:
        """Leave the epoch, in good order."""
        if self._broker is not None:
            try:
                self._broker.report(self._coordinator.name, "")
            except (BrokerUnreachable, EpochOver, RedisError) as error:  # its last words go after a minute
                log.info(line("left unsaid", why=error))
        for reflector in self._reflectors:
            reflector.leave()

    def _work(self, now_ms: int) -> int:
        coordinator = self._coordinator
        due_ms = coordinator.step(now_ms)
        self._follow()
        self._tell(now_ms)
        broker = self._broker
        if broker is None:
            return due_ms
        if coordinator.wants_lists(now_ms) and self._list_for_opening():
            return 0
        if self._owners.in_doubt:
            self._owners.settle(broker)
        if now_ms >= self._check_due_ms:
            self._check_due_ms = now_ms + CHECK_EVERY_MS
            marks = broker.watermarks()
            for reflector in self._reflectors:
                reflector.check(marks)
        due_ms = min([due_ms, *[each.step(now_ms, coordinator.may_list) for each in self._reflectors]])
        if self._owners.in_doubt:
            due_ms = 0
        if self._guard is not None:
            self._guard.step(broker, coordinator.paused, now_ms)  # before the next round may open the epoch
        if self._acts is not None and coordinator.phase == OPEN:
            self._acts.step(broker, now_ms)
        lists = sum(reflector.lists for reflector in self._reflectors)
        if lists != self._lists or now_ms >= self._publish_due_ms:
            self._lists = lists
            # Also every second, because an ingestor that died may have left a list half published.
            left = broker.republish(PUBLISH_OBJECTS)
            self._publish_due_ms = now_ms if left else now_ms + PUBLISH_EVERY_MS
            due_ms = 0 if left else due_ms
        if now_ms >= self._report_due_ms:
            self._report_due_ms = now_ms + REPORT_EVERY_MS
            self._report(broker, now_ms)
        return due_ms

    def _report(self, broker: Broker, now_ms: int) -> None:
        """Say in Redis what is heard: one that is deaf while others hear is seen there alone."""
        reflectors = self.status(now_ms).reflectors
        silent_ms = {name: reflector.heard_ms for name, reflector in reflectors.items()}
        broker.report(self._coordinator.name, hearing.told(sorted(self._deaf), silent_ms))

    def _follow(self) -> None:
        """Let the reflectors join the coordinator's epoch, or leave with it."""
        broker = self._coordinator.broker
        if broker is self._broker:
            return
        self._broker = broker
        for reflector in self._reflectors:
            reflector.join(broker) if broker is not None else reflector.leave()
            if broker is not None and self._anew:
                reflector.relist()
        self._anew = self._anew and broker is None

    def _list_for_opening(self) -> bool:
        """Have all that the API has by now in the cache, as the drain is over and no earlier write can land. Returns
        whether it is.
        """
        coordinator = self._coordinator
        if self._listing_for != coordinator.epoch:
            self._listing_for = coordinator.epoch
            for reflector in self._reflectors:
                reflector.verify()
        if not all(reflector.listed for reflector in self._reflectors):
            return False
        coordinator.lists_committed([reflector.name for reflector in self._reflectors])
        return True

    def _tell(self, now_ms: int) -> None:
        coordinator = self._coordinator
        if coordinator.phase == OPEN and self._told_open != coordinator.epoch:
            self._told_open = coordinator.epoch
            self._on_open(coordinator.epoch)
        if now_ms < self._tell_due_ms:
            return
        self._tell_due_ms = now_ms + TELL_EVERY_MS
        for reflector in self._reflectors:
            heard_ms = reflector.lister_watcher.heard_ms()
            deaf = self._broker is not None and heard_ms > 0 and now_ms - heard_ms > DEAF_MS
            if deaf and reflector.name not in self._deaf:
                self._deaf.add(reflector.name)
                log.error(line("deaf", resource=reflector.name, silent_ms=now_ms - heard_ms))
            elif not deaf and reflector.name in self._deaf:
                self._deaf.discard(reflector.name)
                log.warning(line("hears again", resource=reflector.name))
        if now_ms >= self._status_due_ms and self._broker is not None:
            self._status_due_ms = now_ms + STATUS_EVERY_MS
            status = asdict(self.status(now_ms))
            for name, facts in status.pop("reflectors").items():
                log.info(line("reflector", resource=name, **facts))
            log.info(line("status", **status))
