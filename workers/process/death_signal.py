"""A child that ends with its parent, also when the parent is killed with SIGKILL.

The kernel sends the signal when the *thread* that forked ends, so only a main thread may start such children. The
setting survives an exec (not of a set-user-ID program) and is not inherited by grandchildren. It does not notice a
parent that died before it was made, so the parent's pid is checked afterwards.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)  # bound here: a child between fork and exec should load nothing


def die_with_parent(signum: int = signal.SIGKILL, *, parent_pid: int) -> None:
    """Ask the kernel to send this process ``signum`` when its parent ends; for use in a child after a fork.

    ``parent_pid`` is what ``os.getpid()`` gave before the fork. Ends this process at once if the parent is another by
    now. Raises OSError where the kernel refuses.
    """
    if _LIBC.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl(PR_SET_PDEATHSIG): {os.strerror(code)}")
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signum)


def command_dying_with_this_process(command: Sequence[str], signum: int = signal.SIGKILL) -> list[str]:
    """``command`` behind a small Python that binds itself to the calling process and then becomes it.

    For programs started from a process that has threads: between fork and exec nothing of ours runs there. The pid of
    the child is the pid of the program. ``command[0]`` is a path; exit code 127 when it cannot be run.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(int(signum)), *command]


def _main(arguments: list[str]) -> None:
    parent_pid, signum, *command = arguments
    die_with_parent(int(signum), parent_pid=int(parent_pid))
    try:
        os.execv(command[0], command)  # noqa: S606 - the caller's own command, handed on
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        raise SystemExit(127) from None


if __name__ == "__main__":
    _main(sys.argv[1:])
