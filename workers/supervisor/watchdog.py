"""What a supervisor is to its workers, for one worker started by RQ's own command line: `rq worker --worker-class ...`.

The worker forks its watchdog before it starts a thread. The watchdog renews the worker's leases, and kills the worker
when it stalls or has lost them. It gives the worker's keys back at the moment of its end: a pipe that only the worker
holds open tells it.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import selectors
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

import redis

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.errors import EpochOver
from oarlock.workers.counters.turn_slots import TurnSlots
from oarlock.workers.epoch.epoch_search import EpochSearch
from oarlock.workers.epoch.identity import LEASE_TIMEOUT_S, Identity, new_supervisor_name, open_client
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.exit_code import ExitCode
from oarlock.workers.process.fork import Forked, fork_process
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings
from oarlock.workers.process.wakeup import new_selector
from oarlock.workers.rq.worker_lists import DeadWorkers
from oarlock.workers.supervisor.lease_manager import REFUSALS, RETRY_MS, LeaseManager, open_lease_manager
from oarlock.workers.supervisor.standstill import Standstill
from oarlock.workers.supervisor.timer_wait import watch_instead

log = logging.getLogger("oarlock.fleet")


@dataclass(frozen=True, slots=True)
class Watched:
    """A worker's identity and the process that watches it; the pipe's end closes with the worker, however it ends."""

    identity: Identity
    watchdog: Forked
    alive_fd: int

    def watchdog_lives(self) -> bool:
        """Whether the watchdog still runs. A worker without one must leave: nobody renews its leases."""
        return self.watchdog.poll() is None


def start_watchdog(
    settings: Settings, worker_name: str, queues: Sequence[str], rq: redis.Redis, clock: Clock
) -> Watched:
    """Wait for an epoch, register the calling process as a worker, fork its watchdog. ``rq``: RQ's client.

    Call it on the main thread, before any other is started.
    """
    search, supervisor = EpochSearch(settings), new_supervisor_name()
    holder = f"{re.sub(r'[^A-Za-z0-9._-]', '-', worker_name)}-{secrets.token_hex(4)}"
    while True:
        seen = search.look(clock.mono_ms())
        if seen is not None:
            client = open_client(settings, seen, LEASE_TIMEOUT_S)
            try:
                RedisBroker(client, seen.epoch, shard=settings.tag).register(holder, supervisor, queues)
                break
            except (*REFUSALS, EpochOver) as error:
                log.warning(line("waiting", reason=error))
            finally:
                client.close()
        time.sleep(RETRY_MS / 1000)
    identity = Identity(holder, supervisor, seen, TurnSlots(1)[0])
    dead = DeadWorkers(rq, queues)
    dead.add(worker_name)
    worker_pid, (death_fd, alive_fd) = os.getpid(), os.pipe()

    def life() -> int:
        os.close(alive_fd)
        try:
            _Watchdog(settings, identity, worker_pid, death_fd, clock).run()
        finally:
            dead.remove()
        return ExitCode.DONE

    # It ends when its worker has ended, not before: a terminal sends Ctrl-C to both.
    stops = (signal.SIGTERM, signal.SIGINT)
    watchdog = fork_process(f"watchdog of {holder}", life, ignored=stops, outlives_parent=True)
    os.close(death_fd)
    return Watched(identity, watchdog, alive_fd)


class _Watchdog:
    def __init__(self, settings: Settings, identity: Identity, worker_pid: int, death_fd: int, clock: Clock) -> None:
        self._settings, self._identity, self._worker_pid = settings, identity, worker_pid
        self._death_fd, self._clock = death_fd, clock
        self._selector = new_selector()
        self._selector.register(death_fd, selectors.EVENT_READ)
        self._watched_timer: socket.socket | None = None
        self._standstill, self._killed = Standstill(), ""

    def run(self) -> None:
        """Watch the worker until it has ended, then give back what it held."""
        leases = open_lease_manager(self._settings, self._identity.seen, self._clock)
        try:
            while self._step(leases):
                pass
            blamed = "" if self._killed else self._identity.slot.read().task
            tasks = leases.release(self._identity.holder, blamed)
            log.info(line("ended", worker=self._identity.holder, blamed=blamed or "-", released=len(tasks)))
            until_ms = self._clock.mono_ms() + self._settings.lease_ms
            while leases.owes_release and self._clock.mono_ms() < until_ms:
                time.sleep(RETRY_MS / 1000)
                leases.run_due([])
        except EpochOver as over:
            self._kill(f"epoch over: {over}")

    def _step(self, leases: LeaseManager) -> bool:
        """One round. Returns whether the worker lives."""
        now_ms, holder = self._clock.mono_ms(), self._identity.holder
        if leases.expired(now_ms):
            self._kill("no renewal was acknowledged")
        if holder in leases.run_due([] if self._killed else [holder]):
            self._kill("not registered any more")
        elif leases.answered and not self._killed:
            leases.lending.run_due({holder: self._identity.counts})
        if self._identity.slot.stalled(now_ms, self._settings.stall_ms):
            self._kill(f"stalled over {self._identity.slot.read().task or 'a call'}")
        if self._standstill.lasts(self._worker_pid, now_ms, self._settings.lease_ms):
            self._kill("stopped by a signal")
        self._watched_timer = watch_instead(self._selector, self._watched_timer, leases.timer_socket)
        pause_ms = max(0, leases.next_ms() - self._clock.mono_ms())
        ready = {key.fileobj for key, _ in self._selector.select(pause_ms / 1000)}
        if self._death_fd in ready or os.getppid() != self._worker_pid:
            return False
        if self._watched_timer in ready:
            leases.timer_ready()
        return True

    def _kill(self, reason: str) -> None:
        """The pid is our parent's as long as it is our parent's: no other process can have it."""
        if not self._killed and os.getppid() == self._worker_pid:
            self._killed = reason
            log.warning(line("kill", worker=self._identity.holder, pid=self._worker_pid, reason=reason))
            os.kill(self._worker_pid, signal.SIGKILL)
