"""Planted faults as the script plays them: planted, named by each channel, healed, forgotten by each channel."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.planted.fleet import FAILED, Fleet

WITHIN_S = 120.0
"""From the planting until each channel names a fault, and from the healing until none does."""
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


Channel = Callable[[str], str]
"""What is answered to the commands of a section."""


def play(faults: Sequence[Fault], fleet: Fleet, channels: Mapping[str, Channel]) -> list[Outcome]:
    """Plant them together, and see each named and forgotten by itself. Raises NotSeen."""
    fleet.rest(WITHIN_S)
    for fault in faults:
        fault.prepare(fleet)
        for name, ask in channels.items():
            if not fault.is_forgotten(answer := ask(fault.section)):
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
    for fault, outcome in zip(faults, outcomes, strict=True):
        for name, ask in channels.items():
            _until(fault, ask, fault.is_forgotten, f"{name} names it no longer")
        outcome.gone_s = time.monotonic() - healed_s
    return outcomes


def _named(fault: Fault, objects: Sequence[str], channels: Mapping[str, Channel], planted_s: float) -> Outcome:
    outcome, wanted = Outcome(fault.title), (*fault.causes, *objects)
    for name, ask in channels.items():
        missing = list(wanted)

        def names(answer: str, missing: list[str] = missing) -> bool:
            missing[:] = [each for each in wanted if not re.search(each, answer)]
            return not missing

        _until(fault, ask, names, f"{name} names {missing}")
        outcome.named_s[name] = time.monotonic() - planted_s
    return outcome


def _until(fault: Fault, ask: Channel, holds: Callable[[str], bool], what: str) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not holds(answer := ask(fault.section)):
        if time.monotonic() > deadline_s:
            raise NotSeen(f"{fault.title}: not within {WITHIN_S:g} s: {what}. The answer was:\n{answer}")
        time.sleep(PAUSE_S)
