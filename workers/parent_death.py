"""A process that ends with its parent, also when the parent is killed.

Linux sends the signal when the *thread* that forked ends, so only main threads may fork (see prctl(2),
PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(
    None, use_errno=True
)  # loaded before any fork: a child between fork and work does as little as it can


class Orphaned(Exception):
    """The parent was gone before the signal was arranged."""


def die_with_parent(parent_pid: int, signum: int = signal.SIGKILL) -> None:
    """Be sent ``signum`` when the parent ends. Call it first thing in the child, with the parent's pid from before.

    Raises Orphaned where the parent has ended already, OSError where the kernel refuses.
    """
    if _LIBC.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl(PR_SET_PDEATHSIG): {os.strerror(code)}")
    if os.getppid() != parent_pid:
        raise Orphaned(f"parent {parent_pid} is gone")
