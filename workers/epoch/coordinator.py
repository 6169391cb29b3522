"""Keeps one ingestor in the fleet's epoch, or lets it begin a new one: first the Lease, then Redis, lists, OPEN.

Driven by steps, as a reflector is. ``next_step`` decides what to do; this module does it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from oarlock.broker.epoch import Seen
from oarlock.broker.keys import PROTOCOL
from oarlock.broker.protocol import Broker
from oarlock.workers.epoch.bootstrap import Bootstrap, Stage
from oarlock.workers.epoch.fleet_lease import DRAIN, OPEN, PAUSED, FleetLease, LeaseStore, Swapped
from oarlock.workers.epoch.kept_pauses import pauses_to_write
from oarlock.workers.epoch.lease_watch import Heard, LeaseWatch, News
from oarlock.workers.epoch.next_step import Me, Move, Step, View, next_step
from oarlock.workers.epoch.redis_side import EpochStore
from oarlock.workers.epoch.shard_layout import Layout
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings
from oarlock.workers.process.shards import SHARDS_MAX

LOOK_EVERY_MS = 1_000
LOOK_DRAINING_MS = 250
READ_AWAY_MS = 300
RETRY_MS = 1_000
BOOTSTRAP, RENEW, OPENED = "bootstrap", "renew", "opened"

log = logging.getLogger("oarlock.ingest")


class FleetRefused(Exception):
    """This process may not work for the fleet and must end. The message is one line."""


class EpochCoordinator:
    """``broker`` belongs to the epoch to work for, None if there is none; ``phase`` is then DRAIN or OPEN.

    ``wake`` is called, on another thread, when a request on the Lease has ended. ``layout``: for shards other than 0.
    ``protocol``: for tests.
    """

    def __init__(
        self,
        redis: EpochStore,
        leases: LeaseStore,
        settings: Settings,
        clock: Clock,
        name: str,
        *,
        wake: Callable[[], None] = lambda: None,
        layout: Layout | None = None,
        protocol: int = PROTOCOL,
    ) -> None:
        self._redis, self._settings, self._clock, self.name = redis, settings, clock, name
        self._protocol, self._layout = protocol, layout
        self._watch = LeaseWatch(leases, settings.lease_ms, wake)
        self.broker: Broker | None = None
        self.phase = ""
        self.paused = False
        """Whether the epoch is open but the fleet is stopped: no turn begins."""
        self.looks = 0
        """At Redis, that were answered: not each step takes one."""
        self.bootstrap: Bootstrap | None = None
        """The attempt of this process, while it holds the Lease for it."""
        self._attempt: tuple[int, int] = 0, 0
        """Epoch and drain of the last attempt to win the Lease, while its outcome is open; else 0, 0."""
        self._known: tuple[int, str] | None = None
        self._refused = 0
        self._read_due_ms = self._look_due_ms = self._swap_due_ms = 0
        self._said: dict[bool, str] = {}
        """The last line about the Lease as such (True), and about what is done (False)."""

    # -- for the ingestor ------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The epoch to work for; 0 if there is none."""
        return self.broker.epoch if self.broker is not None else 0

    @property
    def standing(self) -> str:
        """For the log: away (in no epoch), bootstrapper or member."""
        return "bootstrapper" if self.bootstrap is not None else "away" if self.broker is None else "member"

    def wants_lists(self, now_ms: int) -> bool:
        """Whether the drain is over, and this process has to make sure of every resource now."""
        return self.bootstrap is not None and self.bootstrap.wants_lists(now_ms)

    @property
    def may_list(self) -> bool:
        """Whether a list may be committed now. Of a drain the bootstrapper makes use: a write that has not landed by
        then is looked for once the drain is over (``wants_lists``).
        """
        return self.phase == OPEN or self.bootstrap is not None

    def lists_committed(self, resources: Sequence[str]) -> None:
        """All lists have been committed: the epoch may be opened."""
        assert self.bootstrap is not None
        self.bootstrap.lists_committed(resources)

    def suspect(self, why: str, *, unusable: bool = False) -> None:
        """Leave the epoch, which may be over. ``unusable``: never use it again, whatever Redis and the Lease say."""
        if self.epoch and (unusable or self.phase == OPEN):  # before OPEN its scripts may be loaded once more
            self._refused = self.epoch
        self._go_away(why)

    def resign(self) -> Future[Swapped] | None:
        """End in good order: let another ingestor take over the bootstrap at once."""
        lease = self._watch.lease
        if self.bootstrap is None or lease is None or self._watch.busy:
            return None
        return self._watch.swap(lease.renewed("", self._clock.wall_ms()), RENEW, self._clock.mono_ms())

    def step(self, now_ms: int) -> int:
        """Do what is due. Returns ms until the next step is due, unless ``wake`` is called earlier.

        Raises BrokerUnreachable and EpochOver, and FleetRefused where this process must end.
        """
        if self._layout is not None:
            self._heed(self._layout, now_ms)
        heard = self._watch.take(now_ms)
        if heard is not None:
            self._hear(heard, now_ms)
        if self.bootstrap is not None and not self._watch.doubtful:
            self._go_on_bootstrapping(self.bootstrap, now_ms)
        elif self.broker is not None and self.bootstrap is None and now_ms >= self._look_due_ms:
            self._look_again(now_ms)
        reads = self.bootstrap is None or self._watch.doubtful
        if reads and not self._watch.busy and now_ms >= self._read_due_ms:
            self._read_due_ms = now_ms + self._read_every_ms()
            self._watch.read(now_ms)
        if self._watch.answered or (self._layout is not None and self._layout.answered):
            return 0
        drained_ms = self.bootstrap.drained_ms if self.bootstrap is not None else None
        times = [self._read_due_ms, self._look_due_ms, drained_ms or 0]
        times += [self._layout.next_ms] if self._layout is not None else []
        return min([LOOK_EVERY_MS, *(at - now_ms for at in times if at > now_ms)])

    def _heed(self, layout: Layout, now_ms: int) -> None:
        """Leave the shard's epoch while the cluster may have another number of shards."""
        bootstrap = self.bootstrap
        layout.step(now_ms, hurry=bootstrap is not None and layout.settled_ms < bootstrap.begun_ms)
        if layout.refusal and (self.broker is not None or bootstrap is not None):
            self._go_away(layout.refusal)

    def _read_every_ms(self) -> int:
        if self.broker is None:
            return READ_AWAY_MS
        return self._settings.lease_ms // 2 if self.phase == OPEN else LOOK_EVERY_MS

    # -- answers ---------------------------------------------------------------------------------------------------

    def _hear(self, heard: Heard, now_ms: int) -> None:
        match heard.news:
            case News.READ:
                self._decide(now_ms)
            case News.UNREAD:
                self._warn("no lease", heard.text)
                self._read_due_ms = now_ms + RETRY_MS
            case News.WON:
                self._said.pop(True, None)
                self._won(heard.purpose, now_ms)
            case News.LOST:
                if heard.purpose == BOOTSTRAP and not heard.unknown:
                    self._attempt = 0, 0
                self._read_due_ms = now_ms
            case News.REFUSED:
                self._warn("lease refused", heard.text)
                self._read_due_ms = self._swap_due_ms = now_ms + RETRY_MS

    def _won(self, purpose: str, now_ms: int) -> None:
        if purpose == BOOTSTRAP:
            self._become_bootstrapper()
        elif purpose == OPENED:
            self.bootstrap = None
            self._read_due_ms = now_ms + (self._read_every_ms() if self.broker is not None else 0)

    def _decide(self, now_ms: int) -> None:
        seen, lease = self._look(), self._watch.lease
        age_ms = self._clock.wall_ms() - lease.renewed_ms if lease is not None else 0
        view = View(lease, seen, self._watch.unchanged_ms(now_ms), self._watch.changed, age_ms)
        fleet, lease_ms, shards = self._settings.fleet_id, self._settings.lease_ms, self._settings.shards
        memory = self._known, self._refused, self._attempt[0]
        step = next_step(view, Me(self.name, fleet, self._protocol, lease_ms, *memory, shards, self._settings.serves))
        if self._layout is not None and self._layout.refusal and step.move is not Move.REFUSE:
            step = Step(Move.WAIT, self._layout.refusal)
        self._say(step.move, step.why)
        match step.move:
            case Move.JOIN:
                self._join(seen, now_ms)
                self._keep_pauses(now_ms)  # here too: a short Lease is read before the next look at Redis is due
                # Any member that sees it unrenewed for most of the time between two reads renews it for all.
                stale = lease is not None and lease.phase == OPEN and view.unchanged_ms >= lease_ms * 2 // 5
                if lease is not None and stale and not self._watch.busy:
                    self._renew(lease, RENEW, now_ms)
            case Move.BOOTSTRAP:
                self._begin(step, seen, now_ms)
            case Move.GO_ON:
                self._watch.confirmed_ms = self._watch.asked_ms
                self._become_bootstrapper()
            case Move.CONFIRM:
                assert lease is not None
                self._renew(lease, OPENED, now_ms)
            case Move.WAIT:
                self._go_away(step.why)
            case Move.REFUSE:
                self._go_away(step.why)
                raise FleetRefused(step.why)

    # -- in an epoch -----------------------------------------------------------------------------------------------

    def _join(self, seen: Seen, now_ms: int) -> None:
        self.bootstrap, self._attempt = None, (0, 0)
        if self.broker is None or self._known != (seen.epoch, seen.run):
            self.broker, self._known = self._redis.broker(seen), (seen.epoch, seen.run)
            log.info(line("joined", epoch=seen.epoch, phase=seen.phase))
        self._set_phase(seen.phase, now_ms)

    def _set_phase(self, phase: str, now_ms: int) -> None:
        self.paused = phase == PAUSED
        self.phase = OPEN if self.paused else phase
        self._look_due_ms = now_ms + (LOOK_EVERY_MS if self.phase == OPEN else LOOK_DRAINING_MS)

    def _look(self) -> Seen:
        seen = self._redis.look()
        self.looks += 1
        return seen

    def _look_again(self, now_ms: int) -> None:
        seen = self._look()
        if seen.intact and (seen.epoch, seen.run) == self._known:
            self._set_phase(seen.phase, now_ms)
            self._keep_pauses(now_ms)
        else:
            self._go_away(f"Redis shows epoch {seen.epoch} of run {seen.run[:8]}")

    def _keep_pauses(self, now_ms: int) -> None:
        """Write into the Lease what people have paused or resumed since."""
        lease = self._watch.lease
        assert self.broker is not None
        pauses = pauses_to_write(self.broker, lease)
        if pauses is not None and lease is not None and not self._watch.busy:
            self._renew(replace(lease, pauses=pauses), RENEW, now_ms)

    def _go_away(self, why: str) -> None:
        if self.broker is not None or self.bootstrap is not None:
            log.warning(line("left", epoch=self.epoch or self._attempt[0], why=why))
            self._read_due_ms = 0
        self.bootstrap, self._attempt = None, (0, 0)
        self.broker, self.phase, self.paused = None, "", False
        self._redis.distrust()

    # -- a new one -------------------------------------------------------------------------------------------------

    def _begin(self, step: Step, seen: Seen, now_ms: int) -> None:
        self._go_away(step.why)
        before, wall_ms = self._watch.lease, self._clock.wall_ms()
        transitions = before.transitions + 1 if before is not None else 0
        fleet, shards = self._settings.fleet_id, self._settings.shards
        if self._layout is not None:
            moving = 0  # only shard 0's Lease says that
        elif before is not None:
            moving = before.still_moving(shards)
        else:  # the Lease was lost: nobody knows what it said
            moving = SHARDS_MAX if step.drain else 0
        after = FleetLease(
            fleet, self._protocol, step.epoch, seen.run, DRAIN, self.name, wall_ms, transitions, shards, moving
        )
        after = replace(after, pauses=before.pauses if before is not None else "")
        if now_ms >= self._swap_due_ms:
            self._attempt = step.epoch, self._settings.drain_ms if step.drain else 0
            self._watch.swap(after, BOOTSTRAP, now_ms)

    def _become_bootstrapper(self) -> None:
        if self.bootstrap is None:
            epoch, drain_ms = self._attempt
            log.warning(line("bootstrap", epoch=epoch, drain_ms=drain_ms))
            self.bootstrap = Bootstrap(self._redis, self._clock, epoch, drain_ms, self._settings.lease_ms // 2)

    def _go_on_bootstrapping(self, bootstrap: Bootstrap, now_ms: int) -> None:
        lease = self._watch.lease
        assert lease is not None
        settled_ms = self._layout.settled_ms if self._layout is not None else None
        stage = bootstrap.step(now_ms, lease, self._watch.confirmed_ms, not self._watch.busy, settled_ms)
        if bootstrap.broker is not None and bootstrap.seen is not None and self.broker is None:
            self.broker, self._known = bootstrap.broker, (bootstrap.seen.epoch, bootstrap.seen.run)
        self._set_phase(OPEN if bootstrap.open else DRAIN if self.broker is not None else "", now_ms)
        match stage:
            case Stage.LOST:
                self._go_away("the bootstrap is lost")
            case Stage.RENEW:
                self._renew(lease, RENEW, now_ms)
            case Stage.OPENED:
                self._renew(lease, OPENED, now_ms)
            case Stage.ON:
                pass

    def _renew(self, lease: FleetLease, purpose: str, now_ms: int) -> None:
        if now_ms >= self._swap_due_ms:
            phase = OPEN if purpose == OPENED else ""
            self._watch.swap(lease.renewed(self.name, self._clock.wall_ms(), phase), purpose, now_ms)

    def _warn(self, event: str, why: str) -> None:
        """Say what is wrong with the Lease: once, however often it is decided to write it meanwhile."""
        self._say(event, why, logging.WARNING, lease=True)

    def _say(self, event: str, why: str, level: int = logging.INFO, *, lease: bool = False) -> None:
        if (said := f"{event}: {why}") != self._said.get(lease):
            self._said[lease] = said
            log.log(level, line(event, why=why))
