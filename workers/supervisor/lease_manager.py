"""What a supervisor, or the watchdog of a lone worker, does for its workers in Redis: one thread, without sleeping.

Each second it renews all leases in one call, gives back the keys of leases that nobody renewed, and queues the keys
that are due. In between it queues a key at the moment it is due. After a death it releases the worker's keys at once,
and tries again until Redis has answered.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Sequence

from redis.exceptions import RedisError

from oarlock.broker.epoch import Seen
from oarlock.broker.protocol import Broker
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.errors import BrokerFull, BrokerUnreachable
from oarlock.workers.budget.lending import Lending
from oarlock.workers.epoch.identity import LEASE_TIMEOUT_S, open_client
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings
from oarlock.workers.supervisor.timer_wait import Timer, TimerWait

log = logging.getLogger("oarlock.fleet")

RETRY_MS = 200
NEVER_MS = 1 << 62
REFUSALS = (BrokerUnreachable, BrokerFull, RedisError)
"""No answer, or one that did nothing: it is tried again. Where renewals fail for too long, the workers are killed."""


class LeaseManager:
    """For the holders of one epoch. Every call may raise EpochOver; only ``register`` raises REFUSALS."""

    def __init__(self, broker: Broker, timer: Timer, settings: Settings, clock: Clock) -> None:
        self.broker, self._timer, self._settings, self._clock = broker, timer, settings, clock
        self.lending = Lending(broker, settings, clock)
        self._acked_ms = clock.mono_ms()  # when the last acknowledged renewal was sent
        self._renew_at_ms = self._due_at_ms = self._listen_at_ms = 0
        self._broke_ms = -RETRY_MS
        self._unreleased: dict[str, tuple[str, str]] = {}
        """Holder -> the key that is to blame for its end, and how it ended."""
        self._trouble = ""
        self.timer_socket: socket.socket | None = None
        """The caller watches it and calls ``timer_ready`` when it can be read; None while there is none."""
        self.on_reclaim: Callable[[int], None] = lambda keys: None
        self.on_release: Callable[[int], None] = lambda keys: None
        """Called with the number of keys that were taken back: of expired leases, and of holders that ended."""

    @property
    def answered(self) -> bool:
        """Whether the last call was answered."""
        return not self._trouble

    @property
    def owes_release(self) -> bool:
        """Whether a holder is still to be released."""
        return bool(self._unreleased)

    def next_ms(self) -> int:
        """When ``run_due`` has something to do again, or ``lending``, which is asked only while Redis answers."""
        lend_at_ms = self.lending.next_ms if self.answered else NEVER_MS
        return min(self._renew_at_ms, self._due_at_ms, self._listen_at_ms, lend_at_ms)

    def expired(self, now_ms: int) -> bool:
        """No renewal acknowledged for so long that the leases must be taken for lost: a second before they end, or a
        third of a short one.
        """
        lease_ms = self._settings.lease_ms
        return now_ms - self._acked_ms >= lease_ms - min(1_000, lease_ms // 3)

    def renew_now(self) -> None:
        """A worker doubts the epoch: the renewal that is due now shows whether it is over."""
        self._renew_at_ms = 0

    def register(self, holder: str, supervisor: str, queues: Sequence[str]) -> bool:
        """Let a new holder claim. False: the supervisor is drained. Raises one of REFUSALS: it may be registered, and
        holds nothing.
        """
        return self.broker.register(holder, supervisor, queues)

    def run_due(self, holders: Iterable[str]) -> list[str]:
        """Do what is due now. Returns the holders that may not claim any more."""
        lost: list[str] = []
        now_ms = self._clock.mono_ms()
        try:
            if now_ms >= self._renew_at_ms:
                self._renew_at_ms = now_ms + RETRY_MS
                lost = self.broker.renew(list(holders), lease_ms=self._settings.lease_ms)
                self._acked_ms = now_ms
                self._answered()
                self._release_owed()
                self._reclaim()
                self._renew_at_ms = now_ms + self._settings.renew_every_ms
                self._due_at_ms = 0  # others' timers may be forgotten with their supervisor
            if now_ms >= self._listen_at_ms:
                self._listen_at_ms = now_ms + self._settings.renew_every_ms
                self.timer_socket = self._timer.start()
                self._listen_at_ms = NEVER_MS
            if now_ms >= self._due_at_ms:
                self._due()
        except REFUSALS as error:
            self._refused(error)
        return lost

    def timer_ready(self) -> None:
        """The timer's socket can be read."""
        try:
            if self._timer.take():
                self._due()
        except REFUSALS as error:
            self.close()
            now_ms = self._clock.mono_ms()
            if now_ms - self._broke_ms < RETRY_MS:  # refused again at once: so would be the next
                self._listen_at_ms = now_ms + RETRY_MS
            self._broke_ms = now_ms
            self._refused(error)

    def release(self, holder: str, blamed: str = "", ended: str = "") -> list[str]:
        """Give the keys of a dead holder back, now or, where Redis does not answer, with the next renewal."""
        self._unreleased[holder] = blamed, ended
        if self._trouble:
            return []  # a death must not make the caller wait out a timeout; the next renewal finds it
        try:
            return self._release_owed()
        except REFUSALS as error:
            self._refused(error)
            return []

    def close(self) -> None:
        """Hang up the timer, until it is due again. What is not released is left to the end of its lease."""
        self._timer.close()
        self.timer_socket, self._listen_at_ms = None, 0

    def _release_owed(self) -> list[str]:
        given_back: list[str] = []
        for holder, (blamed, ended) in list(self._unreleased.items()):
            released = self.broker.release(holder, blamed=blamed, ended=ended)
            del self._unreleased[holder]
            self.on_release(len(released))
            given_back += released
        return given_back

    def _reclaim(self) -> None:
        tasks = self.broker.reclaim()
        for task in tasks:
            log.warning(line("reclaimed", task=task, reason="lease ended"))
        self.on_reclaim(len(tasks))

    def _due(self) -> None:
        asked_ms = self._clock.mono_ms()
        self._due_at_ms = asked_ms + RETRY_MS
        _, next_in_ms = self.broker.due()
        self._due_at_ms = NEVER_MS if next_in_ms is None else asked_ms + next_in_ms

    def _answered(self) -> None:
        if self._trouble:
            log.warning(line("redis_back"))
            self._trouble = ""

    def _refused(self, error: Exception) -> None:
        if not self._trouble:
            log.warning(line("redis_silent", error=error))
        self._trouble = str(error) or "no answer"
        self._due_at_ms = max(self._due_at_ms, self._clock.mono_ms() + RETRY_MS)


def open_lease_manager(settings: Settings, seen: Seen, clock: Clock) -> LeaseManager:
    """For one epoch, on connections of its own."""
    client = open_client(settings, seen, LEASE_TIMEOUT_S)
    broker = RedisBroker(client, seen.epoch, shard=settings.tag)
    return LeaseManager(broker, TimerWait(client, broker.keys.of("timer")), settings, clock)
