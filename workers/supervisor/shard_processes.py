"""One process a shard, for a command that serves them all: what happens to one of them is no concern of the others.

The parent starts each again when it ends, and ends them all when it is asked to, or when one says that what it was
given cannot be used. It does nothing else and talks to nobody. The children die with it.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oarlock.workers.process.fork import fork_process
from oarlock.workers.process.log_line import line
from oarlock.workers.supervisor.children import back_off_ms

log = logging.getLogger("oarlock.shards")

USAGE = 2
"""The exit code of what was given and cannot be used: it will not be better in a second."""
STEADY_MS = 10_000
"""Who lived so long is started again at once."""
FORK_AGAIN_MS = 1_000
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)

Life = Callable[[str], int]
"""What a shard's process does, from after the fork to its exit code."""


@dataclass(slots=True)
class _Child:
    shard: str
    pid: int = 0
    started_ms: int = 0
    start_at_ms: int = 0
    deaths: int = 0


def run_each(shards: Sequence[str], life: Life) -> int:
    """Run ``life`` of each shard until SIGTERM or SIGINT, which they are sent too; a second one kills them.

    Returns 0, or 2 where one of them ended so. Call it on the main thread, before any other is started.
    """
    assert threading.active_count() == 1, "a process with threads must not fork"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        return _Parent([_Child(shard) for shard in shards], life).run()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Parent:
    def __init__(self, children: list[_Child], life: Life) -> None:
        self._children, self._life = children, life
        self._stops = 0
        self._code = 0

    def run(self) -> int:
        while not self._stops or any(child.pid for child in self._children):
            now_ms = _mono_ms()
            due = [child for child in self._children if not child.pid and not self._stops]
            for child in due:
                if child.start_at_ms <= now_ms:
                    self._start(child, now_ms)
            waits = [child.start_at_ms - now_ms for child in due if not child.pid]
            found = signal.sigtimedwait(_SIGNALS, max(0, min(waits, default=60_000)) / 1_000)
            if found is not None and found.si_signo != signal.SIGCHLD:
                self._stop()
            for child in self._children:
                self._reap(child)
        return self._code

    def _start(self, child: _Child, now_ms: int) -> None:
        try:
            child.pid = fork_process(f"shard {child.shard}", lambda: self._life(child.shard))
        except OSError as error:  # no more processes, or no memory: the other shards are not to end for it
            log.warning(line("shard not started", shard=child.shard, reason=error))
            child.start_at_ms = now_ms + FORK_AGAIN_MS
            return
        child.started_ms = now_ms
        log.info(line("shard started", shard=child.shard, pid=child.pid))

    def _reap(self, child: _Child) -> None:
        """Signals of the same kind become one: so each is asked."""
        if not child.pid:
            return
        pid, status = os.waitpid(child.pid, os.WNOHANG)
        if not pid:
            return
        code, now_ms = os.waitstatus_to_exitcode(status), _mono_ms()
        child.pid = 0
        child.deaths = 1 if now_ms - child.started_ms >= STEADY_MS else child.deaths + 1
        child.start_at_ms = now_ms + back_off_ms(child.deaths, False)
        if not self._stops:
            log.warning(line("shard ended", shard=child.shard, pid=pid, code=code))
        if code == USAGE:
            self._code = USAGE
            if not self._stops:
                self._stop()

    def _stop(self) -> None:
        self._stops += 1
        for child in self._children:
            if child.pid:
                os.kill(child.pid, signal.SIGTERM if self._stops == 1 else signal.SIGKILL)


def _mono_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
