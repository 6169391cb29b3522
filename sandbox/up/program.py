"""The programs of `oarlock up`: what is run, with which environment, log and pipe."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from oarlock.workers.process.child import SLOWER, BackOff, Child
from oarlock.workers.process.death_signal import command_dying_with_this_process
from oarlock.workers.process.fork import Forked, fork_process

BACK_OFF = BackOff(early_ms=10_000, pauses_ms=SLOWER, after_steady=1)
BEFORE_OTHERS, YIELDS = 10, 5
"""How much less nice than we Redis is, and where that is forbidden how much nicer the programs are. All wait for Redis,
which does one thing at a time: where they may take its processor away amid a call, all that wait behind that call wait
for longer, too.
"""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. ``environment`` is added to ours; ``report``: it is given a pipe (``OARLOCK_REPORT_FD``).

    ``fds``: descriptors of ours that it is given too, under their own numbers, each time it is started. ``life``: what
    it does in a fork of this process, in place of the command; then it shares what is loaded here.
    """

    role: str
    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    report: bool = False
    fds: tuple[int, ...] = ()
    life: Callable[[], int] | None = None


class ProgramChild(Child):
    """A program that is kept running. ``yields``: how much nicer than we it is."""

    process: subprocess.Popen[bytes] | Forked | None

    def __init__(self, program: Program, logs: Path, yields: int) -> None:
        super().__init__(program.name, BACK_OFF)
        self.program, self._yields = program, yields
        self.log = logs / f"{program.name}.log"
        self.report_fd = -1

    def run(self, now_ms: int, stdout: int | None = None) -> None:
        """Run it; it dies with us. Only the main thread may call this. ``stdout``: a descriptor instead of the log."""
        self.start(lambda: self._yielding(stdout), now_ms)

    def _yielding(self, stdout: int | None) -> subprocess.Popen[bytes] | Forked:
        process = self._open(stdout)
        if self._yields:
            with suppress(OSError):  # where that is forbidden, they are equals
                os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + self._yields)
        return process

    def _open(self, stdout: int | None) -> subprocess.Popen[bytes] | Forked:
        environment = {**os.environ, **self.program.environment}
        keep: tuple[int, ...] = ()
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if self.program.report:
                self.report_fd, theirs = os.pipe()
                os.set_blocking(self.report_fd, False)
                environment["OARLOCK_REPORT_FD"] = str(theirs)
                keep = (theirs,)
            if self.program.life is not None:
                return fork_process(self.name, partial(_live, self.program.life, environment, log))
            return subprocess.Popen(
                command_dying_with_this_process(self.program.command),
                stdin=subprocess.DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log,
                env=environment,
                pass_fds=(*keep, *self.program.fds),
                start_new_session=True,  # Ctrl-C is for us: we end the children in good order
            )
        except OSError:
            self._close_report()
            raise
        finally:
            for fd in (log, *keep):
                os.close(fd)

    def ended(self, now_ms: int) -> int | None:
        """As every child's; and its pipe is closed."""
        code = super().ended(now_ms)
        if code is not None:
            self._close_report()
        return code

    def _close_report(self) -> None:
        if self.report_fd >= 0:
            os.close(self.report_fd)
            self.report_fd = -1

    def last_words(self) -> str:
        """The last line of its log, for messages; "" where there is none."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - 4096))
                lines = file.read().decode(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _live(life: Callable[[], int], environment: Mapping[str, str], log: int) -> int:
    """``life`` with what a command would have been given: a session, a log, an environment and signals of its own."""
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for fd, standard in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(fd, standard)
    os.environ.update(environment)
    return life()
