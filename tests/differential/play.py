"""One scenario on both sides, step by step, compared whenever both have come to rest."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.differential import snapshot
from tests.differential.compare import Difference, differences
from tests.differential.explain import explain
from tests.differential.hands import Hands
from tests.differential.moment import Moment
from tests.differential.quiet import unsettled
from tests.differential.rules import Rules
from tests.differential.scene import Scene
from tests.differential.step import Step, StepRefused

LOOK_S = 0.05


@dataclass(frozen=True)
class Patience:
    """Seconds. `quiet`: without a change, before a side counts as at rest. `agree`: how long both have to have been at
    rest before what still differs is a difference, `meant` where all of it is explained. `settle`: within which both
    have to come to rest."""

    quiet: float = 0.4
    agree: float = 15.0
    meant: float = 0.8
    settle: float = 240.0


@dataclass
class Outcome:
    """What became of a scenario. `differences` are those that nothing explains, with which it ended."""

    number: int
    steps: list[Step]
    done: int = 0
    compared: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    trouble: str = ""
    """Why it ended without a comparison: a refused step, or a side that did not come to rest."""
    snapshots: dict[str, Any] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return not self.differences and not self.trouble


class Table:
    """Both sides of one scenario. `rules`: upstream's."""

    def __init__(
        self, upstream: tuple[Hands, Scene], fleet: tuple[Hands, Scene], patience: Patience, rules: Rules
    ) -> None:
        self._hands = {"upstream": upstream[0], "fleet": fleet[0]}
        self._scenes = {"upstream": upstream[1], "fleet": fleet[1]}
        self._patience, self._rules = patience, rules
        self._taken = self._take()
        self._meant: dict[str, str] = {}

    async def play(self, number: int, steps: Sequence[Step], *, withheld: int = -1) -> Outcome:
        """`withheld`: index of a step that the fleet's side is not given, to see that it is noticed."""
        outcome = Outcome(number, list(steps))
        told: set[tuple[str, ...]] = set()
        try:
            await asyncio.gather(*(each.begin() for each in self._hands.values()))
            for index, step in enumerate(steps):
                await asyncio.gather(
                    *(hands.apply(step) for side, hands in self._hands.items() if index != withheld or side != "fleet")
                )
                found = await self._compared(outcome, steps[: index + 1])
                for difference, reason in found:
                    if not reason:
                        outcome.differences.append(difference)
                    elif difference.path not in told:
                        told.add(difference.path)
                        outcome.explained[reason] += 1
                if outcome.differences:
                    break
                outcome.done += 1
        except StepRefused as error:
            outcome.trouble = f"step refused: {error}"
        except _Restless as error:
            outcome.trouble = str(error)
        if not outcome.good:
            outcome.snapshots = self._take()
        await asyncio.gather(*(each.clear() for each in self._hands.values()))
        return outcome

    def _take(self) -> dict[str, Any]:
        return {side: snapshot.take(scene) for side, scene in self._scenes.items()}

    async def _compared(self, outcome: Outcome, steps: Sequence[Step]) -> list[tuple[Difference, str]]:
        """Differences that stay, each with its explanation."""
        ends_s = time.monotonic() + self._patience.settle
        rest_since_s = 0.0
        before = self._taken
        while True:
            reason = self._restless()
            now_s = time.monotonic()
            if reason:
                rest_since_s = 0.0
                if now_s > ends_s:
                    raise _Restless(f"not at rest within {self._patience.settle:g} s: {reason}")
            else:
                rest_since_s = rest_since_s or now_s
                taken = self._take()
                sides = (taken["upstream"], taken["fleet"], before["upstream"], before["fleet"])
                moment = Moment(steps, *sides, self._rules.manager)
                found = [
                    (each, explain(each, moment) or self._meant.get(repr(each), ""))
                    for each in differences(taken["upstream"], taken["fleet"])
                ]
                enough_s = self._patience.meant if all(why for _, why in found) else self._patience.agree
                if not found or now_s > rest_since_s + enough_s:
                    outcome.compared += 1
                    self._taken = taken
                    self._meant = {repr(each): why for each, why in found if why}  # it stays so while it stays the same
                    return found
            await asyncio.sleep(LOOK_S)

    def _restless(self) -> str:
        for side, scene in self._scenes.items():
            if scene.quiet_s() < self._patience.quiet:
                return f"{side}: something has just changed"
            if reason := unsettled(scene, taints_wake=side == "fleet" or self._rules.taints_wake):
                return f"{side}: {reason}"
        return ""


class _Restless(Exception):
    pass
