"""Standard input, output and error, where whoever started us has closed them, or they take no more."""

from __future__ import annotations

import errno
import os
import sys

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def open_what_is_closed() -> None:
    """Give a closed standard stream the null device. Its number would be that of the next file or socket, to which
    others, such as a program started later, write as to their output; libuv aborts a process that closes one of these.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, "w" if number else "r")  # noqa: SIM115  # it stays open for as long as we live
            os.set_inheritable(stream.fileno(), stream.fileno() == number)
            setattr(sys, name, stream)


def takes_no_more(error: OSError) -> bool:
    """Whether it is of a write to an open file that has no room, such as our output on a full disk."""
    return error.errno in _FULL and error.filename is None


def drop_output() -> None:
    """Of what is still to be written, let nothing be tried again as the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
