"""What a process has learnt of where a master is, and of who tells it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from oarlock.broker.connection.redis_url import RedisUrl

Place = tuple[str, int]

PATIENCE_S = 0.25
"""At least so long is a server waited for that should know the way; four times what the last answer took, if longer."""
PATIENCE_MAX_S = 1.0
"""Where none of them has answered, the next one is waited for twice as long, up to this: they may be slow."""
UNANSWERED_S = 5.0
"""Where none of them has answered, the next question comes after this time, or ten times the patience."""


class Whereabouts:
    """What this process has learnt of where one master is. All its clients share it, and the workers that it forks: a
    server that says nothing is then waited for once, not by each connection of each of them.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = tuple(places)
        """In the order in which they are asked."""
        self.proven: Place | None = None
        """The last one that has said it is a master."""
        self.patience_s = PATIENCE_S
        self.silent_until_s = 0.0
        self._silent: frozenset[Place] = frozenset()
        self._told: tuple[Place, Place] | None = None
        """Who told last, and what."""

    def answered(self, asked: Place, found: Place, took_s: float) -> None:
        """It is asked first from now on."""
        self.places = (asked, *(each for each in self.places if each != asked))
        self.patience_s = max(PATIENCE_S, 4 * took_s)
        self.silent_until_s, self._silent, self._told = 0.0, frozenset(), (asked, found)
        if self.proven != found:
            self.proven = None  # where nobody answers next, nobody must go back there

    def unanswered(self, asked: Place, now_s: float) -> None:
        """It is asked last from now on."""
        self.places = (*(each for each in self.places if each != asked), asked)
        self._silent |= {asked}
        if self._silent.issuperset(self.places):
            self.patience_s = min(PATIENCE_MAX_S, 2 * self.patience_s)
            self.silent_until_s = now_s + max(UNANSWERED_S, 10 * self.patience_s)

    def proved(self, place: Place) -> None:
        """It says that it is a master. Not believed of one that was replaced while it was connected to."""
        if self._told is None or self._told[1] == place:
            self.proven = place

    def misled(self, wrong: Place) -> None:
        """No master of ours is there. If who is asked first has said so, another is asked first from now on."""
        if self._told == (self.places[0], wrong):
            self.places = (*self.places[1:], *self.places[:1])
        if self.proven == wrong:
            self.proven = None

    def learn(self, places: Sequence[Place]) -> None:
        """Ask these too, after all others."""
        self.places = (*self.places, *(place for place in dict.fromkeys(places) if place not in self.places))


@cache
def whereabouts(url: RedisUrl, shard: str) -> Whereabouts:
    """The process's knowledge of one master."""
    return Whereabouts(url.places)
