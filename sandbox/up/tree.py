"""The process tree of `oarlock up`, from the first start to the last end.

up -> Redis, API server with nodes, ingestors, supervisor -> workers. Everything but the API server is started again
when it ends (the API server holds the truth: without it there is nothing to go on with). One thread, no polling: it
waits for the death of a child, a line from the supervisor, a signal, or the next start that is due.
"""

from __future__ import annotations

import json
import logging
import os
import selectors
import signal
from collections.abc import Callable, Sequence

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis, RedisNotStarted
from oarlock.sandbox.up.program import BACK_OFF, ProgramChild
from oarlock.sandbox.up.state_dir import Process, StateDir
from oarlock.workers.process.child import next_start_ms
from oarlock.workers.process.clock import SystemClock
from oarlock.workers.process.log_line import line
from oarlock.workers.process.wakeup import FOR_PARENTS, SignalSocket, new_selector

log = logging.getLogger("oarlock.up")

TELL_AGAIN_S = 1.0
STOP_LIMIT_MS = 8_000
"""How long children may take to end in good order before they are killed."""


class ApiServerEnded(Exception):
    """The API server is gone, and the cluster's state with it."""


class Stopped(Exception):
    """Somebody asked us to stop."""


class Tree:
    """``watch`` runs until it is to stop; ``stop`` ends what runs, children before what they need."""

    def __init__(self, state: StateDir, redis: EmbeddedRedis) -> None:
        self._state, self._redis = state, redis
        self._api: ProgramChild | None = None
        self.children: list[ProgramChild] = []
        self._workers: dict[int, list[Process]] = {}
        self._reports: dict[int, bytes] = {}
        self._clock = SystemClock()
        self._redis_started_ms = self._clock.wall_ms()
        self._redis_due_ms: int | None = None
        self._redis_failures = 0
        self._redis_trouble = ""
        self._told = True
        """Whether processes.json says what runs. Else it is tried again: there may be room by then."""
        self._stops = 0
        self._selector = new_selector()
        self._signals = SignalSocket(*FOR_PARENTS, signal.SIGHUP)
        self._selector.register(self._signals.socket, selectors.EVENT_READ)

    def check(self) -> None:
        """Raises Stopped once somebody asked us to. Reads the signals, so a look for dead children comes after it."""
        self._listen()
        if self._stops:
            raise Stopped

    def _listen(self) -> None:
        self._stops += sum(signum != signal.SIGCHLD for signum in self._signals.read())

    def add_api(self, child: ProgramChild, stdout: int) -> None:
        """Start the API server; its first line goes to ``stdout``."""
        self._api = child
        child.run(self._clock.mono_ms(), stdout)
        self._tell()

    def add(self, children: Sequence[ProgramChild]) -> None:
        """Start children that are to be kept running."""
        self.children += children
        for child in children:
            self._start(child)
        self._tell()

    def watch(self, until: Callable[[], bool] | None = None, tick_s: float | None = None) -> None:
        """Keep all running until SIGTERM or SIGINT (raises Stopped), or until ``until`` (asked each tick) is true.

        Raises ApiServerEnded.
        """
        while True:
            self.check()
            self._keep_running()
            if until is not None and until():
                return
            wait_s = self._wait_s()
            for at_most_s in (tick_s, None if self._told else TELL_AGAIN_S):
                if at_most_s is not None:
                    wait_s = at_most_s if wait_s is None else min(wait_s, at_most_s)
            for key, _ in self._selector.select(wait_s):
                if key.fileobj is not self._signals.socket:
                    self._read_report(int(key.fd))

    def stop(self) -> None:
        """End everything: the fleet, then the API server, then Redis. A second signal to us kills at once."""
        self._signals.read()  # what has come so far was the request to stop
        self._stops = 0
        self._end(self.children)
        if self._api is not None:
            self._end([self._api])
        self._redis.stop()
        self.children, self._api = [], None
        self._tell()
        self._selector.close()
        self._signals.close()

    def processes(self) -> list[Process]:
        """All processes that run now."""
        found = []
        if self._redis.alive:
            found.append(Process("redis", self._redis.pid, "redis", started_ms=self._redis_started_ms))
        for child in [*([self._api] if self._api else []), *self.children]:
            if child.pid:
                started_ms = self._clock.wall_ms() - (self._clock.mono_ms() - child.started_ms)
                found.append(Process(child.program.role, child.pid, child.program.name, started_ms=started_ms))
                found += self._workers.get(child.report_fd, [])
        return found

    # -- keeping it running -----------------------------------------------------------------------------------------

    def _keep_running(self) -> None:
        now_ms, changed = self._clock.mono_ms(), False
        if self._api is not None and (code := self._api.ended(now_ms)) is not None:
            words = self._api.last_words()
            self._api = None
            self._tell()
            raise ApiServerEnded(f"exit code {code}{f': {words}' if words else ''}")
        changed |= self._keep_redis(now_ms)
        for child in self.children:
            changed |= self._note_end(child, now_ms)
            if child.is_due(now_ms):
                changed |= self._start(child)
        if changed or not self._told:
            self._tell()

    def _keep_redis(self, now_ms: int) -> bool:
        if self._redis.alive:
            return False
        if self._redis_due_ms is None:
            log.warning(line("ended", name="redis", again_in_ms=0))
            self._redis_due_ms = now_ms
        if now_ms < self._redis_due_ms:
            return False
        try:
            self._redis.start()
        except (RedisNotStarted, OSError) as error:  # no more processes, or a full disk: that may pass, too
            self._redis_failures += 1
            pause_ms = BACK_OFF.pause_ms(self._redis_failures + 1)
            self._redis_due_ms = self._clock.mono_ms() + pause_ms
            if str(error) != self._redis_trouble:
                log.warning(line("not_started", name="redis", reason=error, again_in_ms=pause_ms))
            self._redis_trouble = str(error)
            return False
        self._redis_due_ms, self._redis_failures, self._redis_started_ms = None, 0, self._clock.wall_ms()
        self._redis_trouble = ""
        log.info(line("started", name="redis", pid=self._redis.pid))
        return True

    def _note_end(self, child: ProgramChild, now_ms: int) -> bool:
        fd = child.report_fd
        code = child.ended(now_ms)
        if code is None:
            return False
        if fd >= 0:
            self._selector.unregister(fd)
            self._workers.pop(fd, None)
            self._reports.pop(fd, None)
        again_in_ms = child.start_at_ms - now_ms
        said = {"said": child.last_words()} if code > 0 else {}
        log.warning(line("ended", name=child.program.name, code=code, again_in_ms=again_in_ms, **said))
        return True

    def _start(self, child: ProgramChild) -> bool:
        """Whether it runs. Else it is tried again in a second: what else runs is not to end for want of a process."""
        try:
            child.run(self._clock.mono_ms())
        except OSError as error:
            if child.is_news(error):
                log.warning(line("not_started", name=child.program.name, reason=error))
            return False
        if child.report_fd >= 0:
            self._selector.register(child.report_fd, selectors.EVENT_READ)
        log.info(line("started", name=child.program.name, pid=child.pid))
        return True

    def _wait_s(self) -> float | None:
        due = [each for each in (next_start_ms(self.children), self._redis_due_ms) if each is not None]
        return max(0, min(due) - self._clock.mono_ms()) / 1000 if due else None

    def _read_report(self, fd: int) -> None:
        """The supervisor says which workers it has: one JSON line for each change."""
        text = self._reports.pop(fd, b"")
        try:
            while chunk := os.read(fd, 65_536):
                text += chunk
        except BlockingIOError:
            pass
        *lines, rest = text.split(b"\n")
        if rest:
            self._reports[fd] = rest
        if not lines:
            return
        told = [each for each in json.loads(lines[-1]) if each["role"] == "worker"]
        known = {each.pid: each.started_ms for each in self._workers.get(fd, [])}
        self._workers[fd] = [
            Process("worker", each["pid"], each["name"], each["name"], known.get(each["pid"], self._clock.wall_ms()))
            for each in told
        ]
        self._tell()

    def _tell(self) -> None:
        try:
            self._state.write_processes(self.processes())
        except OSError as error:  # the disk is full: all that runs is worth more than the list of it
            if self._told:
                log.warning(line("untold", reason=error))
            self._told = False
        else:
            self._told = True

    # -- ending it --------------------------------------------------------------------------------------------------

    def _end(self, children: Sequence[ProgramChild]) -> None:
        for child in children:
            child.send(signal.SIGTERM)
        deadline_ms = self._clock.mono_ms() + STOP_LIMIT_MS
        while any(child.process is not None and child.ended(self._clock.mono_ms()) is None for child in children):
            left_ms = deadline_ms - self._clock.mono_ms()
            if self._stops or left_ms <= 0:
                for child in children:
                    child.send(signal.SIGKILL)
            for key, _ in self._selector.select(max(0.02, min(left_ms, 500) / 1000)):
                if key.fileobj is self._signals.socket:
                    self._listen()
                else:
                    self._selector.unregister(key.fd)
