"""Chance in the simulation: what ``random.Random`` draws, number for number, with fewer calls on the way."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

Item = TypeVar("Item")


class Dice(Random):
    """``choice`` and ``weighted`` are most of what a run draws."""

    def choice(self, seq: Any) -> Any:
        """As ``Random.choice``."""
        count = len(seq)
        bits = count.bit_length()
        drawn = self.getrandbits(bits)
        while drawn >= count > 0:
            drawn = self.getrandbits(bits)
        return seq[drawn]

    def randint(self, a: int, b: int) -> int:
        """As ``Random.randint``."""
        number: int = self.choice(range(a, b + 1))
        return number

    def weighted(self, items: Sequence[Item], up_to: Sequence[float]) -> Item:
        """As ``Random.choices`` for one item. ``up_to``: of each its weight and those before it."""
        return items[bisect(up_to, self.random() * up_to[-1], hi=len(items) - 1)]
