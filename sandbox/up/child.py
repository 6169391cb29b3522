"""One child process of `oarlock up`: how it is started, restarted, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oarlock.workers.process.death_signal import command_dying_with_this_process

BACK_OFF_FIRST_MS = 100
BACK_OFF_MAX_MS = 5_000
STEADY_MS = 10_000
"""A child that lived this long starts with a fresh back-off when it ends."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. ``environment`` is added to ours; ``report``: it is given a pipe (``OARLOCK_REPORT_FD``).

    ``fds``: descriptors of ours that it is given too, under their own numbers, each time it is started.
    """

    role: str
    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    report: bool = False
    fds: tuple[int, ...] = ()


class Child:
    """A program that is kept running. Times are ms of a monotonic clock, given by the caller."""

    def __init__(self, program: Program, logs: Path) -> None:
        self.program = program
        self.log = logs / f"{program.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.report_fd = -1
        self.started_ms = 0
        self.start_at_ms: int | None = None
        self.starts = 0
        self._failures = 0

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self.process.pid if self.process is not None else 0

    def start(self, now_ms: int, stdout: int | None = None) -> None:
        """Run it; it dies with us. Only the main thread may call this. ``stdout``: a descriptor instead of the log."""
        environment = {**os.environ, **self.program.environment}
        keep: tuple[int, ...] = ()
        if self.program.report:
            self.report_fd, theirs = os.pipe()
            os.set_blocking(self.report_fd, False)
            environment["OARLOCK_REPORT_FD"] = str(theirs)
            keep = (theirs,)
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self.process = subprocess.Popen(
                command_dying_with_this_process(self.program.command),
                stdin=subprocess.DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log,
                env=environment,
                pass_fds=(*keep, *self.program.fds),
                start_new_session=True,  # Ctrl-C is for us: we end the children in good order
            )
        finally:
            for fd in (log, *keep):
                os.close(fd)
        self.started_ms, self.start_at_ms = now_ms, None
        self.starts += 1

    def ended(self, now_ms: int) -> int | None:
        """Its exit code once it has ended (negative: a signal); plans the next start. None while it runs."""
        if self.process is None:
            return None
        code = self.process.poll()
        if code is None:
            return None
        self.process = None
        if self.report_fd >= 0:
            os.close(self.report_fd)
            self.report_fd = -1
        self._failures = 1 if now_ms - self.started_ms >= STEADY_MS else self._failures + 1
        self.start_at_ms = now_ms + min(BACK_OFF_FIRST_MS * 2 ** (self._failures - 1), BACK_OFF_MAX_MS)
        return code

    def send(self, number: signal.Signals) -> None:
        """A signal, if it runs."""
        if self.process is not None:
            self.process.send_signal(number)

    def last_words(self) -> str:
        """The last line of its log, for messages; "" where there is none."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - 4096))
                lines = file.read().decode(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
