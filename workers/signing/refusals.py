"""What was refused because its seal is not good: counted, said at a bounded rate, and the end of the turn."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from oarlock.broker.values import Cached
from oarlock.controllers.entries import Watched
from oarlock.workers.process.log_line import line

SAY_EVERY_MS = 10_000
MEND = "see docs/signing.md; a new epoch writes every object anew"

log = logging.getLogger("oarlock.signing")
T = TypeVar("T")


class ObjectRefused(Exception):
    """A cached object is not what an ingestor of ours wrote, or cannot be read. ``resource``: which cache it is in."""

    def __init__(self, resource: str, reason: str) -> None:
        super().__init__(f"a cached object of {resource} is refused: {reason}")
        self.resource = resource


def decoded(resource: Watched[T], cached: Cached) -> T:
    """The object of a blob. Raises ObjectRefused for one that no process of ours can have written."""
    try:
        return resource.decode(cached.blob)
    except (ValueError, RecursionError) as error:
        raise ObjectRefused(resource.plural, f"it cannot be read ({type(error).__name__})") from None


class Refusals:
    """One process's. ``counts``: by resource, for metrics; ``on_refusal`` is called with the resource, for the same."""

    def __init__(self, mono_ms: Callable[[], int]) -> None:
        self._mono_ms, self._say_at_ms, self._unsaid = mono_ms, 0, 0
        self.counts: Counter[str] = Counter()
        self.on_refusal: Callable[[str], None] | None = None

    def note(self, resource: str, key: str, reason: str) -> None:
        """Count it, and say it unless something was said just now. ``key``: of the turn, or where it was found."""
        self.counts[resource] += 1
        if self.on_refusal is not None:
            self.on_refusal(resource)
        now_ms = self._mono_ms()
        if now_ms < self._say_at_ms:
            self._unsaid += 1
            return
        facts = {"resource": resource, "key": key[:160], "why": reason, "more": self._unsaid, "mend": MEND}
        log.error(line("object refused", **facts))
        self._say_at_ms, self._unsaid = now_ms + SAY_EVERY_MS, 0
