"""One process a shard, for a command that serves all shards: the end of one process leaves the others alone. So do the
ingestor and the workers of `oarlock operator`.

The parent starts each process again when it ends. It ends all of them when it is asked to stop, or when one reports by
its exit code that its settings cannot be used. It does nothing else and has no connections. The children die with it.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from oarlock.workers.process.child import AT_ONCE_THEN_SLOWER, BackOff, Child, next_start_ms
from oarlock.workers.process.clock import SystemClock
from oarlock.workers.process.fork import fork_process
from oarlock.workers.process.log_line import in_every_line, line
from oarlock.workers.process.settings import Settings
from oarlock.workers.process.shards import names
from oarlock.workers.process.wakeup import SignalSocket

log = logging.getLogger("oarlock.shards")

USAGE = 2
"""The exit code for settings that cannot be used: a later start would not go better."""
BACK_OFF = BackOff(early_ms=10_000, pauses_ms=AT_ONCE_THEN_SLOWER, after_steady=1)
LOOK_MS = 60_000

Life = Callable[[str], int]
"""What a shard's process does, from after the fork to its exit code."""


def run_each(parts: Sequence[str], life: Life, what: str = "shard") -> int:
    """Run ``life`` of each shard until SIGTERM or SIGINT, which they are sent too; a second one kills them. ``what``:
    what the parts are, if not shards.

    Returns 0, or 2 where one of them ended so. Call it on the main thread, before any other is started.
    """
    assert threading.active_count() == 1, "a process with threads must not fork"
    return _Parent([Child(part, BACK_OFF) for part in parts], life, what).run()


def run_shards(
    settings: Settings,
    listening: Sequence[socket.socket],
    run: Callable[[Settings, socket.socket | None], int],
) -> int:
    """``run`` for the shard that the settings name; where they name none of several, a process for each shard.

    ``listening``: a socket for each shard that is served, or none. Returns the exit code.
    """
    if not settings.serves_one:
        return run_each(
            names(settings.shards),
            lambda shard: run_shards(replace(settings, shard=shard), listening[int(shard) : int(shard) + 1], run),
        )
    if settings.shards > 1:
        in_every_line(shard=settings.serves)
    return run(settings, listening[0] if listening else None)


class _Parent:
    def __init__(self, children: list[Child], life: Life, what: str) -> None:
        self._children, self._life, self._what = children, life, what
        self._now_ms = SystemClock().mono_ms
        self._stops = 0
        self._code = 0

    def run(self) -> int:
        with SignalSocket() as signals:
            while not self._stops or any(child.pid for child in self._children):
                until_ms = None
                if not self._stops:
                    for child in self._children:
                        self._start(child)
                    until_ms = next_start_ms(self._children)
                pause_ms = LOOK_MS if until_ms is None else max(0, until_ms - self._now_ms())
                for signum in signals.wait(pause_ms / 1_000):
                    if signum != signal.SIGCHLD:
                        self._stop()
                for child in self._children:
                    self._reap(child)
        return self._code

    def _start(self, child: Child) -> None:
        if not child.is_due(now_ms := self._now_ms()):
            return
        try:
            child.start(lambda: fork_process(f"{self._what} {child.name}", lambda: self._life(child.name)), now_ms)
        except OSError as error:  # the other shards are not to end for it
            if child.is_news(error):
                log.warning(line(f"{self._what} not started", **{self._what: child.name}, reason=error))
            return
        log.info(line(f"{self._what} started", **{self._what: child.name}, pid=child.pid))

    def _reap(self, child: Child) -> None:
        pid, code = child.pid, child.ended(self._now_ms())
        if code is None:
            return
        if not self._stops:
            log.warning(line(f"{self._what} ended", **{self._what: child.name}, pid=pid, code=code))
        if code == USAGE:
            self._code = USAGE
            if not self._stops:
                self._stop()

    def _stop(self) -> None:
        self._stops += 1
        for child in self._children:
            child.send(signal.SIGTERM if self._stops == 1 else signal.SIGKILL)
