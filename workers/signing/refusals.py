"""What happens to an object whose signature is not good: it is counted, logged at a bounded rate, and its turn ends."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from oarlock.broker.values.objects import Cached
from oarlock.controllers.entries import Watched
from oarlock.workers.process.log_line import line

SAY_EVERY_MS = 10_000
MEND = "see docs/signing.md; a new epoch writes every object anew"

log = logging.getLogger("oarlock.signing")
T = TypeVar("T")


class ObjectRefused(Exception):
    """A cached object that no ingestor of ours wrote, or that cannot be read. ``resource``: which cache holds it."""

    def __init__(self, resource: str, reason: str) -> None:
        super().__init__(f"a cached object of {resource} is refused: {reason}")
        self.resource = resource


def decoded(resource: Watched[T], cached: Cached) -> T:
    """The object in a blob. Raises ObjectRefused for a blob that no process of ours can have written."""
    try:
        return resource.decode(cached.blob)
    except (ValueError, RecursionError) as error:
        raise ObjectRefused(resource.resource, f"it cannot be read ({type(error).__name__})") from None


class Refusals:
    """The refusals of one process. ``counts``: by resource."""

    def __init__(self, mono_ms: Callable[[], int]) -> None:
        self._mono_ms, self._say_at_ms, self._unsaid = mono_ms, 0, 0
        self.counts: Counter[str] = Counter()

    def note(self, resource: str, key: str, reason: str) -> None:
        """Count a refusal and log it, unless one was logged just now. ``key``: of the turn, or where it was found."""
        self.counts[resource] += 1
        now_ms = self._mono_ms()
        if now_ms < self._say_at_ms:
            self._unsaid += 1
            return
        facts = {"resource": resource, "key": key[:160], "why": reason, "more": self._unsaid, "mend": MEND}
        log.error(line("object refused", **facts))
        self._say_at_ms, self._unsaid = now_ms + SAY_EVERY_MS, 0
