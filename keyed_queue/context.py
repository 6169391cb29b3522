"""What a function is given with its key, and what it may raise."""

from __future__ import annotations

import time
from collections.abc import Callable

from oarlock.queue.values import Claim


class Again(Exception):
    """Raise it to have the key looked at again after ``seconds``. It is no failure: the record is clean."""

    def __init__(self, seconds: float = 0.0) -> None:
        if not 0 <= seconds < 1e9:
            raise ValueError(f"Again({seconds!r}): give seconds from 0 on")
        super().__init__(seconds)
        self.seconds = seconds


class Context:
    """One run of one key. ``token`` is greater than that of any earlier run of the key: give it to whatever you write
    to, and let that refuse a smaller one. ``failures``: failed runs in a row before this one.
    """

    def __init__(self, claim: Claim, deadline_s: float, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self.key = claim.key
        self.token = claim.token
        self.failures = claim.failures
        self.waited_s = claim.waited_ms / 1000
        self._deadline_s, self._monotonic_s = deadline_s, monotonic_s
        self._lost = False

    def still_mine(self) -> bool:
        """Whether the key is ours for certain: the lease, as our own clock counts it from before it was asked for, has
        not ended, and Redis has not said otherwise. It asks nobody and costs nothing. Ask it right before an effect
        outside; what comes between the two only the token can guard.
        """
        return not self._lost and self._monotonic_s() < self._deadline_s

    def _renewed(self, deadline_s: float) -> None:
        self._deadline_s = max(self._deadline_s, deadline_s)

    def _lose(self) -> None:
        self._lost = True
