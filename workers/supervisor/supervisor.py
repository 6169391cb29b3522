"""The supervisor: keeps a number of worker processes alive, renews their leases, gives their keys back when they die.

One thread, no sleep: it waits in one selector for the death of a worker, a token that a delayed key is due earlier, a
request to stop, or its next second. After a death it waits for nothing but Redis, so a killed worker's keys can be
claimed again within milliseconds.
"""

from __future__ import annotations

import gc
import logging
import os
import selectors
import signal
import socket
import threading
from collections.abc import Sequence

from oarlock.broker.epoch import Seen
from oarlock.broker.values.errors import EpochOver
from oarlock.controllers.registry import all_queues
from oarlock.workers.counters.supervision import Supervision
from oarlock.workers.counters.table import Table
from oarlock.workers.counters.turn_slots import TurnSlots
from oarlock.workers.epoch.epoch_search import EpochSearch
from oarlock.workers.epoch.identity import Identity, new_supervisor_name
from oarlock.workers.metrics.serving.metrics_process import MetricsProcess
from oarlock.workers.process.child import next_start_ms
from oarlock.workers.process.clock import Clock, SystemClock
from oarlock.workers.process.exit_code import ExitCode, death_of, ending_of
from oarlock.workers.process.kinds import queues_by_worker
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings
from oarlock.workers.process.wakeup import SignalSocket, new_selector
from oarlock.workers.rq.client import open_rq_client
from oarlock.workers.rq.worker_lists import SUPERVISOR_WAITS_S, DeadWorkers
from oarlock.workers.supervisor.lease_manager import REFUSALS, RETRY_MS, LeaseManager, open_lease_manager
from oarlock.workers.supervisor.position import Death, Position, RunWorker
from oarlock.workers.supervisor.process_list import OnChange, Process
from oarlock.workers.supervisor.queue_anew import QueueAnew
from oarlock.workers.supervisor.timer_wait import watch_instead

log = logging.getLogger("oarlock.fleet")

GRACE_MS = 25_000
"""From SIGTERM to SIGKILL: below the 30 s Kubernetes gives a pod."""
SAME_REQUEST_MS = 1_000
"""Ctrl-C and systemd signal a whole group: a supervisor hears that itself, and once more from its parent. RQ's workers
take what comes within a second for one request, too.
"""
ANEW_PAUSE_MS = 10
DRAINED_ASKS_MS = 1_000
"""How often a drained supervisor asks whether it may begin workers again."""
TELL_AGAIN_MS = 1_000
"""After a list of the processes that could not be written: whoever reads it is to find it right once there is room."""
SEARCH_AFTER_MS = 50
"""After a lost epoch: one that looks intact and is refused all the same must not keep a core busy."""


class Supervisor:
    """``count`` workers, each the life ``run_worker``. ``run`` returns when it was asked to stop and all have ended."""

    def __init__(
        self,
        settings: Settings,
        count: int,
        run_worker: RunWorker,
        *,
        queues: Sequence[str] | None = None,
        on_change: Sequence[OnChange] = (),
        grace_ms: int = GRACE_MS,
        clock: Clock | None = None,
        listening: socket.socket | None = None,
    ) -> None:
        self._settings, self._run_worker = settings, run_worker
        self._on_change, self._grace_ms, self._clock = on_change, grace_ms, clock or SystemClock()
        self.name = new_supervisor_name() + (f"-s{settings.serves}" if settings.shards > 1 else "")
        self._queues = queues = all_queues() if queues is None else queues
        slots = TurnSlots(count)
        table = Table(count + 1)
        served = queues_by_worker(settings, queues, count)
        self._positions = [Position(slots[index], table.rows[index], served[index]) for index in range(count)]
        self._counts, self._metrics = Supervision(table), MetricsProcess(listening, table, settings)
        self._search = EpochSearch(settings)
        self._dead = DeadWorkers(open_rq_client(settings, SUPERVISOR_WAITS_S), queues)
        self._selector = new_selector()
        self._seen: Seen | None = None
        self._leases: LeaseManager | None = None
        self._watched_timer: socket.socket | None = None
        self._workers_made = 0
        self._untold, self._tell_at_ms, self._not_told = True, 0, ""
        self._stopped_at_ms: int | None = None
        self._kill_at_ms: int | None = None
        self._workers_ended_ms: int | None = None
        """When a supervisor that is to end had no worker any more, and some of them were still to be released."""
        self._drained = False
        self._anew: QueueAnew | None = None

    def run(self) -> int:
        """Work until SIGTERM or SIGINT; one a second later kills the workers at once. Returns the exit code."""
        assert threading.active_count() == 1, "a process with threads must not fork workers"
        gc.freeze()  # what is here now never changes: children share its pages
        log.info(line("supervisor", name=self.name, pid=os.getpid(), workers=len(self._positions)))
        with SignalSocket() as signals:
            self._selector.register(signals.socket, selectors.EVENT_READ)
            while not self._done():
                self._turn_round(signals)
            self._tell_at_ms = 0
            self._tell()
        self._metrics.end()
        self._dead.remove()
        log.info(line("supervisor_done", name=self.name))
        return ExitCode.DONE

    def _done(self) -> bool:
        if self._kill_at_ms is None or self._running():
            return False
        if self._leases is None or not self._leases.owes_release:
            return True
        now_ms = self._clock.mono_ms()
        if self._workers_ended_ms is None:
            self._workers_ended_ms = now_ms
        return now_ms > self._workers_ended_ms + self._settings.lease_ms  # from then on others take back what they held

    def _turn_round(self, signals: SignalSocket) -> None:
        now_ms = self._clock.mono_ms()
        self._counts.tick(now_ms)
        self._metrics.keep(now_ms)
        try:
            if self._kill_at_ms is not None and now_ms >= self._kill_at_ms:
                self._kill_all("grace is over")
            if self._leases is None:
                self._seek_epoch(now_ms)
            if self._leases is not None:
                self._keep_workers(self._leases, now_ms)
                self._queue_anew(self._leases)
            self._watch_timer()
            self._tell()
            pause_ms = max(0, self._next_ms() - self._clock.mono_ms())
            ready = {key.fileobj for key, _ in self._selector.select(pause_ms / 1000)}
            self._listen(signals)
            self._reap()
            if self._leases is not None and self._watched_timer in ready:
                self._leases.timer_ready()
        except EpochOver as over:
            self._lose_epoch(str(over))

    def _listen(self, signals: SignalSocket) -> None:
        """Before ``_reap``: the signal of a worker that dies after that look is still to be read and ends the next
        wait.
        """
        for signum in signals.read():
            if signum != signal.SIGCHLD:
                self._stop()

    def _running(self) -> list[Position]:
        return [each for each in self._positions if each.process is not None]

    def _next_ms(self) -> int:
        times = [self._leases.next_ms() if self._leases else self._search.next_ms]
        if self._kill_at_ms is not None and self._running():
            times.append(self._kill_at_ms)
        if self._leases is not None and self._leases.answered:  # else the next renewal comes first
            if self._kill_at_ms is None and (start_at_ms := next_start_ms(self._positions)) is not None:
                times.append(start_at_ms)
            if self._anew is not None and self._anew.left:
                times.append(self._clock.mono_ms() + ANEW_PAUSE_MS)
        return min(times)

    def _queue_anew(self, leases: LeaseManager) -> None:
        """A part of the walk a round: what lies between two rounds is not to wait for all of it."""
        if self._anew is not None and self._anew.left and leases.answered:
            try:
                self._anew.step(leases.broker)
            except REFUSALS as error:
                log.warning(line("not_queued_anew", reason=error))

    def _seek_epoch(self, now_ms: int) -> None:
        """Look for an epoch to work in, once the last one's workers have ended."""
        if self._running():
            self._search.next_ms = now_ms + RETRY_MS
        else:
            self._seen = self._search.look(now_ms)
            if self._seen is not None:
                self._leases = open_lease_manager(self._settings, self._seen, self._clock)
                self._anew = self._anew or QueueAnew(self._queues if self._settings.operator else ())
                self._leases.on_reclaim, self._leases.on_release = self._counts.reclaimed, self._counts.released

    def _keep_workers(self, leases: LeaseManager, now_ms: int) -> None:
        if leases.expired(now_ms):
            self._kill_all("no renewal was acknowledged")
        running = {each.name: each for each in self._running()}
        for holder in leases.run_due(running):
            running[holder].kill("not registered any more")
        for each in self._running():
            if each.slot.stalled(now_ms, self._settings.stall_ms):
                each.kill(f"stalled over {each.slot.read().task or 'a call'}")
            elif each.standstill.lasts(each.pid, now_ms, self._settings.lease_ms):
                each.kill("stopped by a signal")
        self._dead.remove_some(now_ms)
        if self._kill_at_ms is None and leases.answered and not leases.expired(self._clock.mono_ms()):
            due = next((each for each in self._positions if each.is_due(now_ms)), None)
            if due is not None:  # one a round: dead workers are looked for between two forks
                self._fill(due, leases, now_ms)
        if leases.answered:
            leases.lending.run_due({each.name: each.counts for each in self._running()})

    def _fill(self, position: Position, leases: LeaseManager, now_ms: int) -> None:
        """Start a worker. It is registered before it lives, so that no registration can arrive after its release."""
        assert self._seen is not None
        holder = f"w-{self.name}-{self._workers_made}"
        try:
            drained = not leases.register(holder, self.name, position.queues)
        except REFUSALS as error:
            if position.is_news(error):
                log.warning(line("start_failed", worker=holder, reason=error))
            position.start_at_ms = now_ms + RETRY_MS
            return
        if drained != self._drained:
            self._drained = drained
            log.warning(line("drained" if drained else "undrained", name=self.name, workers=len(self._running())))
        if drained:
            for each in self._positions:
                each.start_at_ms = max(each.start_at_ms, now_ms + DRAINED_ASKS_MS)
            return
        self._workers_made += 1
        identity = Identity(holder, self.name, self._seen, position.slot, position.counts, position.queues)
        try:
            position.fork(identity, self._run_worker, self._clock.mono_ms())
        except OSError as error:  # no more processes, or no memory: those that live are not to end for it
            if position.is_news(error):
                log.warning(line("start_failed", worker=holder, reason=error))
            leases.release(holder)
            return
        self._counts.started(position.counts, position.pid)
        log.info(line("started", worker=holder, pid=position.pid))
        self._untold = True

    def _reap(self) -> None:
        """Give back what dead workers held: the first thing that happens after a death."""
        # All deaths are noted before anything is released. A release may show that the epoch is over, and then every
        # worker that still counts as running gets a signal. The pid of a dead one may belong to another process by now.
        deaths: list[Death] = []
        for each in self._running():
            death = each.death(self._clock.mono_ms())
            if death is not None:
                deaths.append(death)
                self._counts.ended(each.counts, death_of(death.code, death.killed))
                if death.code != ExitCode.DONE:
                    self._dead.add(death.holder)
        self._untold = self._untold or bool(deaths)
        for death in deaths:
            self._release(death)

    def _release(self, death: Death) -> None:
        tasks = (
            self._leases.release(death.holder, death.blamed, ending_of(death.code, death.killed))
            if self._leases
            else []
        )
        level = logging.INFO if death.code == ExitCode.DONE else logging.WARNING
        facts = {"worker": death.holder, "pid": death.pid, "code": death.code}
        log.log(level, line("ended", **facts, blamed=death.blamed or "-", released=len(tasks)))
        if self._leases and death.code in (ExitCode.EPOCH_OVER, ExitCode.UNSURE):
            self._leases.renew_now()

    def _lose_epoch(self, reason: str) -> None:
        log.warning(line("epoch_over", reason=reason))
        self._counts.epoch_lost()
        self._kill_all("epoch over")
        if self._leases is not None:
            self._leases.close()
        self._seen = self._leases = None
        self._watch_timer()
        self._search.next_ms = self._clock.mono_ms() + SEARCH_AFTER_MS

    def _watch_timer(self) -> None:
        self._watched_timer = watch_instead(
            self._selector, self._watched_timer, self._leases.timer_socket if self._leases else None
        )

    def _kill_all(self, reason: str) -> None:
        for each in self._running():
            each.kill(reason)

    def _stop(self) -> None:
        now_ms = self._clock.mono_ms()
        if self._stopped_at_ms is not None:
            if now_ms - self._stopped_at_ms >= SAME_REQUEST_MS:
                self._kill_at_ms = now_ms
            return
        self._stopped_at_ms, self._kill_at_ms = now_ms, now_ms + self._grace_ms
        self._counts.leaving()
        log.info(line("draining", workers=len(self._running())))
        for each in self._running():
            each.send(signal.SIGTERM)  # it finishes its batch, then leaves

    def _tell(self) -> None:
        now_ms = self._clock.mono_ms()
        if not self._untold or now_ms < self._tell_at_ms:
            return
        self._untold, trouble = False, ""
        workers = [Process("worker", each.pid, each.name) for each in self._running()]
        for on_change in self._on_change:
            try:
                on_change([Process("supervisor", os.getpid()), *workers])
            except OSError as error:  # the reader of a pipe has gone, or the disk is full: the fleet works on
                self._untold, self._tell_at_ms, trouble = True, now_ms + TELL_AGAIN_MS, str(error)
                if trouble != self._not_told:
                    log.warning(line("untold", reason=error))
        self._not_told = trouble
