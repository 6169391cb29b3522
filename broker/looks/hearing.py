"""What an ingestor says it hears of the API, for people. Nothing is decided by it.

The text that ``scripts/report.lua`` keeps: ``at_ms=.. deaf=pods,nodes daemonsets=812 nodes=80112 pods=80512``. The
numbers are ms for which nothing was heard of the resource at that time, -1: nothing yet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"-?[0-9]{1,15}")
LATE_MS = 20_000
"""An ingestor says it every 5 s. One that was silent for longer hangs, was stopped or has died."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """``age_ms``: since it said so. ``deaf``: resources of which it hears nothing, as it judges. ``silent_ms``: how
    long ago each resource was heard of, at the time of the look; -1 for never.
    """

    ingestor: str
    age_ms: int
    deaf: Sequence[str]
    silent_ms: Mapping[str, int]

    @property
    def late(self) -> bool:
        """Whether the ingestor is silent itself."""
        return self.age_ms > LATE_MS


def told(deaf: Sequence[str], silent_ms: Mapping[str, int]) -> str:
    """The words of one ingestor, as they are kept behind their time."""
    heard = " ".join(f"{resource}={ms}" for resource, ms in sorted(silent_ms.items()))
    return f"deaf={','.join(sorted(deaf))} {heard}" if deaf else heard


def hearing_of(ingestor: str, text: str, now_ms: int) -> Hearing:
    """From the text as kept. Words that are none of ours are left out."""
    words = dict(word.split("=", 1) for word in text.split() if "=" in word)
    at_ms = words.pop("at_ms", "")
    age_ms = max(0, now_ms - int(at_ms)) if _NUMBER.fullmatch(at_ms) else LATE_MS + 1
    deaf = tuple(each for each in words.pop("deaf", "").split(",") if each)
    silent = {name: int(ms) for name, ms in words.items() if _NUMBER.fullmatch(ms)}
    return Hearing(ingestor, age_ms, deaf, {name: ms if ms < 0 else ms + age_ms for name, ms in silent.items()})
