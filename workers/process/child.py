"""A child process that is kept running: started, its end noticed, started again after a pause, ended on request.

The loops that keep children (a supervisor's, that of several shards, that of `oarlock up`) differ in what else they
wait for. What a child is to them is here.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

NOT_STARTED_PAUSE_MS = 1_000
"""After a start that the system refused: no more processes, or no memory."""


class Process(Protocol):
    """What a start makes: a ``subprocess.Popen`` or a ``workers.process.fork.Forked``."""

    pid: int

    def poll(self) -> int | None: ...
    def send_signal(self, sig: int, /) -> None: ...


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long to wait before a child that has ended is started again: slower and slower where children die early.

    ``pauses_ms``: by how many in a row lived less than ``early_ms``; the last pause is for all further ones.
    ``after_steady``: with how many that count begins again after a child that lived longer.
    """

    early_ms: int
    pauses_ms: tuple[int, ...]
    after_steady: int = 0

    def pause_ms(self, early_ends: int) -> int:
        """The pause after so many early ends in a row."""
        return self.pauses_ms[min(early_ends, len(self.pauses_ms) - 1)]


AT_ONCE_THEN_SLOWER = (0, 0, 100, 200, 400, 800, 1_600, 3_200, 5_000)
SLOWER = (100, 100, 200, 400, 800, 1_600, 3_200, 5_000)


class Child:
    """One child process, and after its end the next one in its place. Times are ms of a clock that the caller reads."""

    def __init__(self, name: str, back_off: BackOff) -> None:
        self.name, self._back_off = name, back_off
        self.process: Process | None = None
        self.started_ms = self.start_at_ms = 0
        self.killed = ""
        """Why its parent killed the process that runs, or ran last; else ""."""
        self._early_ends = 0
        self._not_started = ""

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self.process.pid if self.process is not None else 0

    def is_due(self, now_ms: int) -> bool:
        """Whether it is to be started now."""
        return self.process is None and now_ms >= self.start_at_ms

    def start(self, launch: Callable[[], Process], now_ms: int) -> None:
        """Start it. Raises OSError where the system refuses, and then it is due again in a second."""
        try:
            self.process = launch()
        except OSError:
            self.start_at_ms = now_ms + NOT_STARTED_PAUSE_MS
            raise
        self.started_ms, self.killed, self._not_started = now_ms, "", ""

    def is_news(self, why: object) -> bool:
        """Whether this is another reason for which it is not started than the last one, since it last ran. Starts are
        tried again and again, and a shortage may last for hours.
        """
        before, self._not_started = self._not_started, str(why)
        return self._not_started != before

    def ended(self, now_ms: int) -> int | None:
        """Its exit code (negative: a signal), once after it has ended; plans the next start."""
        code = self.process.poll() if self.process is not None else None
        if code is not None:
            self.process = None
            is_early = now_ms - self.started_ms < self._back_off.early_ms
            self._early_ends = self._early_ends + 1 if is_early else self._back_off.after_steady
            self.start_at_ms = now_ms + self._back_off.pause_ms(self._early_ends)
        return code

    def send(self, signum: signal.Signals) -> None:
        """A signal, if it runs. Its end is not noticed yet, so the pid is still its own."""
        if self.process is not None:
            self.process.send_signal(signum)

    def kill(self, reason: str) -> None:
        """SIGKILL, once."""
        if self.process is not None and not self.killed:
            self.killed = reason
            self.send(signal.SIGKILL)


def next_start_ms(children: Iterable[Child]) -> int | None:
    """When the next of those that do not run is due; None where all of them run."""
    return min((child.start_at_ms for child in children if child.process is None), default=None)
