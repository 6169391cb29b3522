"""Scenarios: the same for the same seed, steps that exist, and every kind of step played."""

from __future__ import annotations

import inspect
from collections import Counter

import pytest

from differential.generate import scenario
from differential.hands import Hands

COUNT = 50
MANY = 120


def test_a_seed_is_a_scenario() -> None:
    assert scenario(1, 7, COUNT) == scenario(1, 7, COUNT)
    assert scenario(1, 7, COUNT) != scenario(1, 8, COUNT)
    assert scenario(1, 7, COUNT) != scenario(2, 7, COUNT)
    assert scenario(1, 7, COUNT)[:20] == scenario(1, 7, 20)


def test_steps_can_be_applied_and_all_are_played() -> None:
    played: Counter[str] = Counter()
    for number in range(MANY):
        steps = scenario(1, number, COUNT)
        assert len(steps) == COUNT
        for step in steps:
            method = getattr(Hands, step.what)
            inspect.signature(method).bind(None, **step.about)
            played[step.what] += 1
    known = {
        name
        for name, method in inspect.getmembers(Hands, inspect.iscoroutinefunction)
        if not name.startswith("_") and name not in ("apply", "begin", "clear")
    }
    assert played.keys() == known
    assert min(played.values()) >= 5, played


@pytest.mark.parametrize("number", range(8))
def test_a_quota_concerns_one_owner_at_a_time(number: int) -> None:
    """What is short of pods while quota is in force has to be determined."""
    concerned: set[tuple[str, str]] = set()
    in_force = False
    for step in scenario(1, number, 200):
        if step.what == "set_quota":
            in_force, concerned = True, set()
        elif in_force and "kind" in step.about:
            concerned.add((step.about["kind"], step.about["name"]))
            assert len(concerned) == 1, step
        if step.what.startswith("drop_quota"):
            in_force = False
