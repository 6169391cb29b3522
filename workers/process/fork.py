"""Starts a process of ours by a fork: it answers no signal with its parent's handlers, and it ends with its parent."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable

from oarlock.workers.process.death_signal import die_with_parent
from oarlock.workers.process.exit_code import ExitCode
from oarlock.workers.process.log_line import line

log = logging.getLogger("oarlock.fleet")

_BLOCKED_AT_FORK = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)


def fork_process(name: str, life: Callable[[], int]) -> int:
    """Fork from the main thread, before it ever starts another one. Returns the pid of the process that lives ``life``,
    to its exit code; it ends with its parent.

    Signals are held back over the fork: the child must not answer one with its parent's handlers, which write to
    its parent's sockets. Those it inherits and never touches; closing them by number would be worse.
    """
    parent_pid = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED_AT_FORK)
    try:
        pid = os.fork()
        if pid == 0:
            _live(name, life, parent_pid)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _live(name: str, life: Callable[[], int], parent_pid: int) -> None:
    code = int(ExitCode.FAILED)
    try:
        die_with_parent(parent_pid=parent_pid)
        signal.set_wakeup_fd(-1)
        for signum in _BLOCKED_AT_FORK:
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED_AT_FORK)
        code = life()
    except SystemExit as leaving:  # a second request to stop
        code = leaving.code if isinstance(leaving.code, int) else 0
    except BaseException:
        log.exception(line("process_failed", name=name))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
