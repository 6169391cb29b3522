"""Numbers that people have set, as ``scripts/lib/scopes.lua`` and ``scripts/lib/weights.lua`` read them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from oarlock.broker.pauses import NUMBER_MAX, WEIGHT_MAX, WEIGHT_MIN


def number_in(text: str | None, word: str) -> float | None:
    """The number in a text, such as "rate=5"; None where there is none above 0."""
    if text is None:
        return None
    found = re.search(rf" {word}=([0-9]+\.?[0-9]*) ", f" {text} ")
    return min(float(found[1]), NUMBER_MAX) if found is not None and float(found[1]) > 0 else None


def weight_of(pauses: Mapping[str, str], namespace: str) -> float:
    return weight_in(pauses.get(f"weight namespace {namespace}")) or 1.0


def weight_in(text: str | None) -> float | None:
    weight = number_in(text, "weight")
    return None if weight is None else min(max(weight, WEIGHT_MIN), WEIGHT_MAX)
