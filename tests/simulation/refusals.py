"""Names and nodes whose writes the server answers with an opaque 500: instead of doing what is asked, or after it.

Such a fault lasts for ever, which is until it is lifted, or for a while. Which names and nodes it hits is drawn when
the first write comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from oarlock.workers.turn.steps import Write

KINDS = ("500", "500", "500 late")
FOR_EVER = 1 << 60
LASTS_MS = (FOR_EVER, FOR_EVER, 3_000, 20_000, 60_000)


class Place(NamedTuple):
    """What a fault is tied to: for writes of one verb of one owner, the name of the pod, or its node."""

    owner: str
    verb: str
    where: str


class Refusal(NamedTuple):
    """``kind``: "500" where nothing is done, "500 late" where it is."""

    kind: str
    until_ms: int


@dataclass
class Refusals:
    """``chances``: by verb, how many of the places are hit; ``most`` of them an owner and verb at any time."""

    chances: Mapping[str, float]
    most: int
    place_of: Callable[[Write], Place | None]
    clock_ms: Callable[[], int]
    random: Random
    lifted: bool = False
    known: dict[Place, Refusal | None] = field(default_factory=dict)

    def fault_of(self, write: Write) -> str:
        """What becomes of a write that comes now; empty where nothing is wrong."""
        place = self.place_of(write) if self.chances.get(write.verb) else None
        if place is None or self.lifted:
            return ""
        if place not in self.known:
            self.known[place] = self._drawn(place)
        return refusal.kind if (refusal := self.refusal(place)) is not None else ""

    def refusal(self, place: Place) -> Refusal | None:
        """The fault that holds there now."""
        refusal = None if self.lifted else self.known.get(place)
        return refusal if refusal is not None and self.clock_ms() < refusal.until_ms else None

    def undone(self, owner: str, verb: str) -> set[str]:
        """Where no write of this verb takes effect for now."""
        return {
            place.where
            for place in self.known
            if place[:2] == (owner, verb) and (refusal := self.refusal(place)) is not None and refusal.kind == "500"
        }

    def _drawn(self, place: Place) -> Refusal | None:
        others = [each for each in self.known if each[:2] == place[:2] and self.refusal(each) is not None]
        if len(others) >= self.most or self.random.random() >= self.chances[place.verb]:
            return None
        return Refusal(self.random.choice(KINDS), self.clock_ms() + self.random.choice(LASTS_MS))
