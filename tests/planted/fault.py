"""One planted fault as the script plays it: planted, named by each channel, healed, forgotten by each channel."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.planted.fleet import Fleet

NAMED_WITHIN_S = 120.0
GONE_WITHIN_S = 120.0
PAUSE_S = 0.3


class NotSeen(Exception):
    """The text says what was not seen, and what was shown instead."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``section``: of docs/troubleshoot.md. ``causes`` and ``objects``: patterns that each channel's answer has to have
    while the fault is there; of the causes none while it is not. ``plant`` and ``heal`` change the running fleet.
    """

    title: str
    section: str
    causes: tuple[str, ...]
    objects: tuple[str, ...]
    plant: Callable[[Fleet], None]
    heal: Callable[[Fleet], None]

    def names(self, answer: str) -> bool:
        """Whether an answer has every cause and every object."""
        return all(re.search(each, answer) for each in (*self.causes, *self.objects))

    def blames(self, answer: str) -> bool:
        """Whether an answer has a cause, of whatever object."""
        return any(re.search(each, answer) for each in self.causes)


@dataclass(slots=True)
class Outcome:
    """Seconds from the planting until each channel named the fault, and from the healing until none did."""

    title: str
    named_s: dict[str, float] = field(default_factory=dict)
    gone_s: float = 0.0


Channel = Callable[[str], str]
"""What is answered to the commands of a section."""


def play(fault: Fault, fleet: Fleet, channels: Mapping[str, Channel]) -> Outcome:
    """Raises NotSeen."""
    fleet.rest(GONE_WITHIN_S)
    for name, ask in channels.items():
        if fault.blames(answer := ask(fault.section)):
            raise NotSeen(f"{fault.title}: {name} names it before it is planted:\n{answer}")
    outcome, planted_s = Outcome(fault.title), time.monotonic()
    fault.plant(fleet)
    try:
        for name, ask in channels.items():
            _until(lambda ask=ask: ask(fault.section), fault.names, NAMED_WITHIN_S, f"{fault.title}: {name} names it")
            outcome.named_s[name] = time.monotonic() - planted_s
    finally:
        fault.heal(fleet)
    healed_s = time.monotonic()
    fleet.rest(GONE_WITHIN_S)
    for name, ask in channels.items():
        forgets = f"{fault.title}: {name} names it no longer"
        _until(lambda ask=ask: ask(fault.section), lambda answer: not fault.blames(answer), GONE_WITHIN_S, forgets)
    outcome.gone_s = time.monotonic() - healed_s
    return outcome


def _until(ask: Callable[[], str], holds: Callable[[str], bool], within_s: float, what: str) -> None:
    deadline_s = time.monotonic() + within_s
    while not holds(answer := ask()):
        if time.monotonic() > deadline_s:
            raise NotSeen(f"not within {within_s:g} s: {what}. The answer was:\n{answer}")
        time.sleep(PAUSE_S)
