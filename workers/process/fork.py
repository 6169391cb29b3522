"""Starts a process of ours by a fork: it answers no signal with its parent's handlers, and it ends with its parent."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from oarlock.workers.process.death_signal import die_with_parent
from oarlock.workers.process.exit_code import ExitCode
from oarlock.workers.process.log_line import line

log = logging.getLogger("oarlock.fleet")

_COMM_MAX = 15  # the kernel's limit
_BLOCKED_AT_FORK = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)


class Forked:
    """A child process that was forked here; ``pid``, ``poll`` and ``send_signal`` as of a ``subprocess.Popen``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else waited for it
                pid, status = self.pid, 0
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def send_signal(self, signum: int) -> None:
        """Only before its end was noticed: until then the pid is its own."""
        if self.returncode is None:
            os.kill(self.pid, signum)


@contextmanager
def ending_what_is_forked() -> Iterator[None]:
    """Code of a user's may fork. A child that comes back from it ends here: else it would be a second worker, with the
    turns and the sockets of this one.
    """
    pid = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != pid:
            os._exit(os.EX_SOFTWARE)  # nothing is flushed: what is in the buffers is the parent's


def fork_process(
    name: str, life: Callable[[], int], *, ignored: Collection[int] = (), outlives_parent: bool = False
) -> Forked:
    """Fork from the main thread, before it ever starts another one. The child lives ``life``, to its exit code, deaf to
    the signals ``ignored``, and ends with its parent unless it ``outlives_parent``.

    Signals are held back over the fork: the child must not answer one with its parent's handlers, which write to
    its parent's sockets. Those it inherits and never touches; closing them by number would be worse.
    """
    parent_pid = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED_AT_FORK)
    try:
        pid = os.fork()
        if pid == 0:
            _live(name, life, ignored, 0 if outlives_parent else parent_pid)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Forked(pid)


def _live(name: str, life: Callable[[], int], ignored: Collection[int], parent_pid: int) -> None:
    code = int(ExitCode.FAILED)
    try:
        if parent_pid:
            die_with_parent(parent_pid=parent_pid)
        with suppress(OSError):  # no more files, or no such file
            Path("/proc/self/comm").write_text(name[:_COMM_MAX])  # its command line is its parent's: for `ps -o comm`
        signal.set_wakeup_fd(-1)
        for signum in _BLOCKED_AT_FORK:
            signal.signal(signum, signal.SIG_IGN if signum in ignored else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED_AT_FORK)
        code = life()
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            code = leaving.code or 0  # without one: a second request to stop
        else:
            log.error(line("process_failed", name=name, error=leaving.code))
    except BaseException:
        log.exception(line("process_failed", name=name))
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:  # what a full disk does not take must not lead the child into its parent's code
            os._exit(code)
