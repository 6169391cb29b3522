"""What a supervisor is to its workers, for one worker started by RQ's own command line: `rq worker --worker-class ...`.

The worker forks its keeper before it starts a thread. The keeper renews the worker's leases, kills it when it stalls
or has lost them, and gives its keys back the moment it is gone, which it learns from a pipe that only the worker holds
open.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import selectors
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import redis

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values import EpochOver
from oarlock.workers.epoch.epoch_search import EpochSearch
from oarlock.workers.epoch.identity import TEND_TIMEOUT_S, Seat, new_supervisor_name, open_client
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings
from oarlock.workers.process.turn_slots import TurnSlots
from oarlock.workers.rq.dead_workers import Graves
from oarlock.workers.supervisor.lease_manager import REFUSALS, RETRY_MS, Tender, open_tender

log = logging.getLogger("oarlock.fleet")

_HELD_BACK_AT_FORK = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Kept:
    """A worker's seat and the process that keeps it; the pipe's end closes with the worker, however it ends."""

    seat: Seat
    keeper_pid: int
    alive_fd: int

    def keeper_lives(self) -> bool:
        """Whether the keeper still runs. A worker without one must leave: nobody renews its leases."""
        try:
            return os.waitpid(self.keeper_pid, os.WNOHANG)[0] == 0
        except ChildProcessError:
            return False


def take_seat(settings: Settings, worker_name: str, queues: Sequence[str], rq: redis.Redis, clock: Clock) -> Kept:
    """Wait for an epoch, register, fork the keeper. Main thread, before any other is started. ``rq``: RQ's client."""
    search, supervisor = EpochSearch(settings), new_supervisor_name()
    holder = f"{re.sub(r'[^A-Za-z0-9._-]', '-', worker_name)}-{secrets.token_hex(4)}"
    while True:
        seen = search.look(clock.mono_ms())
        if seen is not None:
            client = open_client(settings, seen, TEND_TIMEOUT_S)
            try:
                RedisBroker(client, seen.epoch, shard=settings.serves).register(holder, supervisor, queues)
                break
            except (*REFUSALS, EpochOver) as error:
                log.warning(line("waiting", reason=error))
            finally:
                client.close()
        time.sleep(RETRY_MS / 1000)
    seat = Seat(holder, supervisor, seen, TurnSlots(1)[0])
    graves = Graves(rq, queues)
    graves.add(worker_name)
    return _fork_keeper(settings, seat, graves, clock)


def _fork_keeper(settings: Settings, seat: Seat, graves: Graves, clock: Clock) -> Kept:
    worker_pid, (death_fd, alive_fd) = os.getpid(), os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK_AT_FORK)
    try:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(alive_fd)
                for signum in _HELD_BACK_AT_FORK:
                    signal.signal(signum, signal.SIG_IGN)  # it ends when its worker has ended, not before
                try:
                    _Keeper(settings, seat, worker_pid, death_fd, clock).run()
                finally:
                    graves.dig()
                code = 0
            except BaseException:
                log.exception(line("keeper_failed", worker=seat.holder))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(death_fd)
    return Kept(seat, pid, alive_fd)


class _Keeper:
    def __init__(self, settings: Settings, seat: Seat, worker_pid: int, death_fd: int, clock: Clock) -> None:
        self._settings, self._seat, self._worker_pid = settings, seat, worker_pid
        self._death_fd, self._clock = death_fd, clock
        self._selector = selectors.DefaultSelector()
        self._selector.register(death_fd, selectors.EVENT_READ)
        self._watched: object = None
        self._killed = ""

    def run(self) -> None:
        """Keep the worker until it has ended, then give back what it held."""
        tender = open_tender(self._settings, self._seat.seen, self._clock)
        try:
            while self._step(tender):
                pass
            blamed = "" if self._killed else self._seat.slot.read().task
            tasks = tender.release(self._seat.holder, blamed)
            log.info(line("ended", worker=self._seat.holder, blamed=blamed or "-", released=len(tasks)))
            until_ms = self._clock.mono_ms() + self._settings.lease_ms
            while tender.owes and self._clock.mono_ms() < until_ms:
                time.sleep(RETRY_MS / 1000)
                tender.tend([])
        except EpochOver as over:
            self._kill(f"epoch over: {over}")

    def _step(self, tender: Tender) -> bool:
        """One round; whether the worker lives."""
        now_ms, holder = self._clock.mono_ms(), self._seat.holder
        if tender.expired(now_ms):
            self._kill("no renewal was acknowledged")
        if holder in tender.tend([] if self._killed else [holder]):
            self._kill("not registered any more")
        if self._seat.slot.stalled(now_ms, self._settings.stall_ms):
            self._kill(f"stalled over {self._seat.slot.read().task or 'a call'}")
        if tender.timer_socket is not self._watched:
            if self._watched is not None:
                self._selector.unregister(self._watched)  # type: ignore[arg-type]
            if tender.timer_socket is not None:
                self._selector.register(tender.timer_socket, selectors.EVENT_READ)
            self._watched = tender.timer_socket
        pause_ms = max(0, tender.next_ms() - self._clock.mono_ms())
        ready = {key.fileobj for key, _ in self._selector.select(pause_ms / 1000)}
        if self._death_fd in ready or os.getppid() != self._worker_pid:
            return False
        if self._watched in ready:
            tender.timer_ready()
        return True

    def _kill(self, reason: str) -> None:
        """The pid is our parent's as long as it is our parent's: no other process can have it."""
        if not self._killed and os.getppid() == self._worker_pid:
            self._killed = reason
            log.warning(line("kill", worker=self._seat.holder, pid=self._worker_pid, reason=reason))
            os.kill(self._worker_pid, signal.SIGKILL)
