"""Why a worker process ended, for the process that started it."""

from __future__ import annotations

import signal
from enum import IntEnum


class ExitCode(IntEnum):
    """None of these is the fault of a key; a death by signal, or any other code, may be."""

    DONE = 0
    EPOCH_OVER = 75  # the data in Redis are of another life, or may be: wait for the next epoch
    UNSURE = 76  # Redis did not answer a claim, an announcement or a finish: only a release says what is still locked
    RELEASED = 77  # somebody released this holder: it may not claim any more
    UNWATCHED = 78  # the watchdog of a worker without a supervisor is gone: nobody renews its leases
    FAILED = 70  # could not start, or a bug: the log has the traceback


class ForcedStop(SystemExit):
    """A second request to stop, raised by a signal handler wherever the main thread is. A function of a user may raise
    SystemExit itself: that one is its failure.
    """


NO_BLAME = frozenset(code for code in ExitCode if code is not ExitCode.FAILED)
"""With these codes a worker says why it ended, so the key it worked on is not blamed."""


def death_of(code: int, killed: bool) -> str:
    """How the metrics name a worker's end, one of ``counters.layout.DEATHS``. ``killed``: by its supervisor."""
    if killed:
        return "killed"
    if code == ExitCode.EPOCH_OVER:
        return "epoch_over"
    return "left" if code in NO_BLAME else "crashed"


def ending_of(code: int, killed: bool) -> str:
    """How the histories of the keys that a worker held name its end; "" where it said itself why it left."""
    if killed:
        return "worker killed by its supervisor"
    if code in NO_BLAME:
        return ""
    if code >= 0:
        return f"worker ended with exit code {code}"
    known = {each.value: each.name for each in signal.Signals}
    return f"worker ended by {known.get(-code, f'signal {-code}')}"
