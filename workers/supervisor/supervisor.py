"""The supervisor: keeps a number of worker processes alive, renews their leases, gives their keys back when they die.

One thread, no sleep: it waits in one selector for the death of a child, a token that a delayed key is due earlier, a
request to stop, or its next second. Nothing it does for a dead child waits for anything but Redis, so a killed worker's
keys can be claimed again within milliseconds.
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
from dataclasses import replace
from pathlib import Path

from oarlock.broker.epoch import Seen
from oarlock.broker.values import EpochOver
from oarlock.controllers.registry import QUEUES
from oarlock.workers.counters.supervision import Supervision
from oarlock.workers.counters.table import Table
from oarlock.workers.epoch.epoch_search import EpochSearch
from oarlock.workers.epoch.identity import Seat, new_supervisor_name
from oarlock.workers.metrics.serving.sibling import Sibling
from oarlock.workers.process.clock import Clock, SystemClock
from oarlock.workers.process.enabled_controllers import queues_by_worker
from oarlock.workers.process.exit_code import NO_BLAME, ExitCode, death_of
from oarlock.workers.process.log_line import in_every_line, line
from oarlock.workers.process.settings import Settings
from oarlock.workers.process.shards import names, share
from oarlock.workers.process.turn_slots import TurnSlots
from oarlock.workers.rq.client import open_rq_client
from oarlock.workers.rq.dead_workers import TIMEOUT_S, Graves
from oarlock.workers.supervisor.children import Berth, Child, RunChild, fork_child
from oarlock.workers.supervisor.lease_manager import REFUSALS, RETRY_MS, Tender, open_tender
from oarlock.workers.supervisor.process_list import OnChange, Process, file_writer
from oarlock.workers.supervisor.shard_processes import run_each
from oarlock.workers.supervisor.supervised import run_supervised
from oarlock.workers.supervisor.wakeups import Wakeups

log = logging.getLogger("oarlock.fleet")

GRACE_MS = 25_000
"""From SIGTERM to SIGKILL: below the 30 s Kubernetes gives a pod."""
FORK_AGAIN_MS = 1_000
SEARCH_AFTER_MS = 50
"""After a lost epoch: one that looks intact and is refused all the same must not keep a core busy."""


class Supervisor:
    """``count`` workers, each the life ``run_child``. ``run`` returns when it was asked to stop and all have left."""

    def __init__(
        self,
        settings: Settings,
        count: int,
        run_child: RunChild,
        *,
        queues: Sequence[str] = QUEUES,
        on_change: Sequence[OnChange] = (),
        grace_ms: int = GRACE_MS,
        clock: Clock | None = None,
        listening: socket.socket | None = None,
    ) -> None:
        self._settings, self._run_child = settings, run_child
        self._on_change, self._grace_ms, self._clock = on_change, grace_ms, clock or SystemClock()
        self.name = new_supervisor_name() + (f"-s{settings.serves}" if settings.shards > 1 else "")
        slots = TurnSlots(count)
        table = Table(count + 1)
        served = queues_by_worker(settings, queues, count)
        self._berths = [Berth(slots[index], table.rows[index], served[index]) for index in range(count)]
        self._counts, self._sibling = Supervision(table), Sibling(listening, table, settings)
        self._search = EpochSearch(settings)
        self._graves = Graves(open_rq_client(settings, TIMEOUT_S), queues)
        self._selector = selectors.DefaultSelector()
        self._seen: Seen | None = None
        self._tender: Tender | None = None
        self._watched_timer: object = None
        self._children_made, self._untold = 0, True
        self._kill_at_ms: int | None = None

    def run(self) -> int:
        """Work until SIGTERM or SIGINT; a second one ends the children at once. Returns the exit code."""
        assert threading.active_count() == 1, "a process with threads must not fork workers"
        gc.freeze()  # what is here now never changes: children share its pages
        log.info(line("supervisor", name=self.name, pid=os.getpid(), workers=len(self._berths)))
        with Wakeups() as wakeups:
            self._selector.register(wakeups.socket, selectors.EVENT_READ)
            while not self._done():
                self._turn_round(wakeups)
            self._tell()
        self._sibling.end()
        self._graves.dig()
        log.info(line("supervisor_done", name=self.name))
        return ExitCode.DONE

    def _done(self) -> bool:
        if self._kill_at_ms is None or self._living():
            return False
        overdue = self._clock.mono_ms() > self._kill_at_ms + self._settings.lease_ms
        return self._tender is None or not self._tender.owes or overdue

    def _turn_round(self, wakeups: Wakeups) -> None:
        now_ms = self._clock.mono_ms()
        self._counts.tick(now_ms)
        self._sibling.keep(now_ms)
        try:
            if self._kill_at_ms is not None and now_ms >= self._kill_at_ms:
                self._kill_all("grace is over")
            if self._tender is None:
                self._seek(now_ms)
            if self._tender is not None:
                self._tend(self._tender, now_ms)
            self._watch_timer()
            self._tell()
            pause_ms = max(0, self._next_ms() - self._clock.mono_ms())
            ready = {key.fileobj for key, _ in self._selector.select(pause_ms / 1000)}
            self._listen(wakeups)
            self._reap()
            if self._tender is not None and self._watched_timer in ready:
                self._tender.timer_ready()
        except EpochOver as over:
            self._lose_epoch(str(over))

    def _listen(self, wakeups: Wakeups) -> None:
        """Before the dead are looked for: who dies after that look has a byte of its own, which ends the next wait."""
        for signum in wakeups.read():
            if signum != signal.SIGCHLD:
                self._stop()

    def _living(self) -> list[Berth]:
        return [berth for berth in self._berths if berth.child is not None]

    def _next_ms(self) -> int:
        times = [self._tender.next_ms() if self._tender else self._search.next_ms]
        if self._kill_at_ms is None:
            times += [berth.fill_at_ms for berth in self._berths if berth.child is None and self._tender is not None]
        elif self._living():
            times.append(self._kill_at_ms)
        return min(times)

    def _seek(self, now_ms: int) -> None:
        """Look for an epoch to work in, once the last one's children are gone."""
        if self._living():
            self._search.next_ms = now_ms + RETRY_MS
        else:
            self._seen = self._search.look(now_ms)
            if self._seen is not None:
                self._tender = open_tender(self._settings, self._seen, self._clock)
                self._tender.on_reclaim, self._tender.on_release = self._counts.reclaimed, self._counts.released

    def _tend(self, tender: Tender, now_ms: int) -> None:
        if tender.expired(now_ms):
            self._kill_all("no renewal was acknowledged")
        living = {berth.child.holder: berth.child for berth in self._berths if berth.child is not None}
        for holder in tender.tend(living):
            living[holder].kill("not registered any more")
        for berth in self._living():
            if berth.child and berth.slot.stalled(now_ms, self._settings.stall_ms):
                berth.child.kill(f"stalled over {berth.slot.read().task or 'a call'}")
        self._graves.dig_some(now_ms)
        if self._kill_at_ms is None and tender.answered and not tender.expired(self._clock.mono_ms()):
            empty = [berth for berth in self._berths if berth.child is None and now_ms >= berth.fill_at_ms]
            if empty:  # one a round: between two forks the dead are looked for
                self._fill(empty[0], tender, now_ms)

    def _fill(self, berth: Berth, tender: Tender, now_ms: int) -> None:
        """Start a worker. It is registered before it lives, so that no registration can arrive after its release."""
        assert self._seen is not None
        holder = f"w-{self.name}-{self._children_made}"
        try:
            tender.register(holder, self.name, berth.queues)
        except REFUSALS as error:
            log.warning(line("start_failed", worker=holder, reason=error))
            berth.fill_at_ms = now_ms + RETRY_MS
            return
        self._children_made += 1
        seat = Seat(holder, self.name, self._seen, berth.slot, berth.counts, berth.queues)
        try:
            berth.child = fork_child(seat, self._run_child, self._clock.mono_ms())
        except OSError as error:  # no more processes, or no memory: those that live are not to end for it
            log.warning(line("start_failed", worker=holder, reason=error))
            berth.fill_at_ms = now_ms + FORK_AGAIN_MS
            tender.release(holder)
            return
        self._counts.started(berth.counts, berth.child.pid)
        log.info(line("started", worker=holder, pid=berth.child.pid))
        self._untold = True

    def _reap(self) -> None:
        """Give back what the dead held: the first thing that happens after a death."""
        ended: list[tuple[Child, int, str]] = []
        for berth in self._living():
            child = berth.child
            if child is not None and (code := child.ended()) is not None:
                # All are taken note of before any is buried: a burial may show that the epoch is over, and then whoever
                # is still noted as living gets a signal, which would go to a pid that is free for others by now.
                ended.append((child, code, berth.slot.read().task))
                berth.vacate(self._clock.mono_ms())
                self._counts.ended(berth.counts, death_of(code, bool(child.killed)))
                if code != ExitCode.DONE:
                    self._graves.add(child.holder)
        self._untold = self._untold or bool(ended)
        for child, code, task in ended:
            self._bury(child, code, task)

    def _bury(self, child: Child, code: int, task: str) -> None:
        blamed = "" if child.killed or code in NO_BLAME else task
        tasks = self._tender.release(child.holder, blamed) if self._tender else []
        level = logging.INFO if code == ExitCode.DONE else logging.WARNING
        facts = {"worker": child.holder, "pid": child.pid, "code": code}
        log.log(level, line("ended", **facts, blamed=blamed or "-", released=len(tasks)))
        if self._tender and code in (ExitCode.EPOCH_OVER, ExitCode.UNSURE):
            self._tender.hurry()

    def _lose_epoch(self, reason: str) -> None:
        log.warning(line("epoch_over", reason=reason))
        self._counts.epoch_lost()
        self._kill_all("epoch over")
        if self._tender is not None:
            self._tender.close()
        self._seen = self._tender = None
        self._watch_timer()
        self._search.next_ms = self._clock.mono_ms() + SEARCH_AFTER_MS

    def _watch_timer(self) -> None:
        """The selector follows the tender's timer connection as it comes and goes."""
        wanted = self._tender.timer_socket if self._tender else None
        if wanted is self._watched_timer:
            return
        if self._watched_timer is not None:
            self._selector.unregister(self._watched_timer)  # type: ignore[arg-type]
        if wanted is not None:
            self._selector.register(wanted, selectors.EVENT_READ)
        self._watched_timer = wanted

    def _kill_all(self, reason: str) -> None:
        for berth in self._living():
            if berth.child is not None:
                berth.child.kill(reason)

    def _stop(self) -> None:
        if self._kill_at_ms is not None:
            self._kill_at_ms = self._clock.mono_ms()
            return
        self._kill_at_ms = self._clock.mono_ms() + self._grace_ms
        self._counts.leaving()
        log.info(line("draining", workers=len(self._living())))
        for berth in self._living():
            if berth.child is not None:
                berth.child.ask_to_leave()

    def _tell(self) -> None:
        if not self._untold:
            return
        self._untold = False
        workers = [Process("worker", b.child.pid, b.child.holder) for b in self._berths if b.child is not None]
        for on_change in self._on_change:
            try:
                on_change([Process("supervisor", os.getpid()), *workers])
            except OSError as error:  # whoever listens may have gone, or its disk be full: the fleet works on
                log.warning(line("untold", reason=error))


def run_fleet(
    settings: Settings,
    count: int,
    *,
    queues: Sequence[str] = QUEUES,
    state_dir: Path | None = None,
    on_change: OnChange | None = None,
    listening: Sequence[socket.socket] = (),
) -> int:
    """`oarlock worker`: ``count`` supervised RQ workers until SIGTERM. Keeps ``state_dir/workers.json`` true.

    ``listening``: where metrics and health are served, a socket for each shard that is served; none: nowhere.

    Where the cluster is divided and no shard is named: a supervisor for each, whose workers these are in turn; worker i
    serves shard i modulo N. A shard's file is ``workers-<shard>.json``, and ``on_change`` is told by each of its own.
    """
    if settings.shards > 1 and not settings.shard:

        def supervise(shard: str) -> int:
            mine, workers = replace(settings, shard=shard), share(count, int(shard), settings.shards)
            own = listening[int(shard) : int(shard) + 1]
            return run_fleet(mine, workers, queues=queues, state_dir=state_dir, on_change=on_change, listening=own)

        return run_each(names(settings.shards), supervise)
    file = "workers.json"
    if settings.shards > 1:
        in_every_line(shard=settings.serves)
        file = f"workers-{settings.serves}.json"
    told = [file_writer(state_dir / file)] if state_dir else []
    told += [on_change] if on_change else []
    return Supervisor(
        settings,
        count,
        run_supervised(settings, queues),
        queues=queues,
        on_change=told,
        listening=listening[0] if listening else None,
    ).run()
