"""Planted faults as the script plays them: planted, named by each channel, healed, forgotten by each channel."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.planted.fleet import FAILED, Fleet

WITHIN_S = 120.0
"""From the planting until each channel names a fault, and from the rest after the healing until none does."""
PAUSE_S = 0.3


class NotSeen(Exception):
    """The text says what was not seen, and what was shown instead."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``section``: of docs/troubleshoot.md. ``causes``: patterns that an answer of each channel has to have while the
    fault is there, all of them, and none while it is not. ``plant`` and ``heal`` change the running fleet; ``plant``
    returns the objects, as patterns that an answer has to have too. ``prepare``: brings what is healthy before it.
    """

    title: str
    section: str
    causes: tuple[str, ...]
    plant: Callable[[Fleet], Sequence[str]]
    heal: Callable[[Fleet], None]
    prepare: Callable[[Fleet], None] = lambda fleet: None

    def is_forgotten(self, answer: str) -> bool:
        """Whether an answer has no cause. What a command says that failed is no answer."""
        return not self.blamed(answer) and FAILED not in answer

    def blamed(self, answer: str) -> bool:
        """Whether an answer has a cause, of whatever object."""
        return any(re.search(each, answer) for each in self.causes)


@dataclass(slots=True)
class Outcome:
    """Seconds from the planting until each channel named the fault, and from the healing until none did."""

    title: str
    named_s: dict[str, float] = field(default_factory=dict)
    gone_s: float = 0.0


Channel = Callable[[], str]
"""What one way to ask answers now."""
Channels = Callable[[str], Mapping[str, Channel]]
"""The ways to ask that a section has, by name."""


def play(faults: Sequence[Fault], fleet: Fleet, channels: Channels) -> list[Outcome]:
    """Plant them together, and see each named and forgotten by itself. Raises NotSeen."""
    fleet.rest(WITHIN_S)
    for fault in faults:
        fault.prepare(fleet)
        for name, ask in channels(fault.section).items():
            if not fault.is_forgotten(answer := ask()):
                raise NotSeen(f"{fault.title}: {name} names it before it is planted:\n{answer}")
    planted_s = time.monotonic()
    try:
        objects = {fault.title: fault.plant(fleet) for fault in faults}
        outcomes = [_named(fault, objects[fault.title], channels, planted_s) for fault in faults]
    finally:
        for fault in reversed(faults):
            fault.heal(fleet)
    healed_s = time.monotonic()
    fleet.rest(WITHIN_S)
    rested_s = time.monotonic()
    for fault, outcome in zip(faults, outcomes, strict=True):
        for name, ask in channels(fault.section).items():
            _until(f"{fault.title}: {name}", ask, partial(_still_named, fault), rested_s)
        outcome.gone_s = time.monotonic() - healed_s
    return outcomes


def _named(fault: Fault, objects: Sequence[str], channels: Channels, planted_s: float) -> Outcome:
    outcome = Outcome(fault.title)
    for name, ask in channels(fault.section).items():
        _until(f"{fault.title}: {name}", ask, partial(_unnamed, (*fault.causes, *objects)), planted_s)
        outcome.named_s[name] = time.monotonic() - planted_s
    return outcome


def _unnamed(wanted: Sequence[str], answer: str) -> str:
    missing = [each for each in wanted if not re.search(each, answer)]
    return f"does not name {missing}" if missing else ""


def _still_named(fault: Fault, answer: str) -> str:
    return "" if fault.is_forgotten(answer) else "names it still"


def _until(who: str, ask: Channel, wrong: Callable[[str], str], since_s: float) -> None:
    """Until nothing is ``wrong`` with an answer. It is asked once, however late."""
    while said := wrong(answer := ask()):
        if time.monotonic() > since_s + WITHIN_S:
            raise NotSeen(f"{who} {said} after {WITHIN_S:g} s. The answer was:\n{answer}")
        time.sleep(PAUSE_S)
