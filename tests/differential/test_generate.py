"""Scenarios: the same for the same seed, steps that exist, and every kind of step played."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

import pytest

from tests.differential.generate import scenario
from tests.differential.hands import Hands

COUNT = 50
MANY = 160


def test_a_seed_is_a_scenario() -> None:
    assert scenario(1, 7, COUNT) == scenario(1, 7, COUNT)
    assert scenario(1, 7, COUNT) != scenario(1, 8, COUNT)
    assert scenario(1, 7, COUNT) != scenario(2, 7, COUNT)
    assert scenario(1, 7, COUNT)[:20] == scenario(1, 7, 20)


@pytest.mark.parametrize("surge", [False, True])
def test_steps_can_be_applied_and_all_are_played(surge: bool) -> None:
    played: Counter[str] = Counter()
    for number in range(MANY):
        steps = scenario(1, number, COUNT, surge=surge)
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


def strategies(surge: bool) -> list[dict[str, Any]]:
    """Every rolling update that is asked for, in the order of the steps of each scenario."""
    specs = [
        step.about["spec"]["updateStrategy"]["rollingUpdate"]
        for number in range(MANY)
        for step in scenario(1, number, COUNT, surge=surge)
        if "updateStrategy" in step.about.get("spec", {})
    ]
    return [each for each in specs if each]


def test_surges_are_played_where_there_are_any() -> None:
    assert not any("maxSurge" in each for each in strategies(surge=False))
    surging = [each for each in strategies(surge=True) if each.get("maxSurge")]
    assert {each["maxUnavailable"] for each in surging} == {0}
    assert {each["maxSurge"] for each in surging} == {1, 2, "50%", "100%"}


def test_a_surge_ends_before_anything_else_is_played() -> None:
    """A merge patch without maxSurge would leave it, and the server refuse both."""
    for number in range(MANY):
        surging: dict[str, bool] = {}
        for step in scenario(1, number, COUNT, surge=True):
            if step.about.get("kind") != "DaemonSet":
                continue
            name = step.about["name"]
            rolling = step.about.get("spec", {}).get("updateStrategy", {}).get("rollingUpdate")
            if surging.get(name) and rolling:
                assert rolling["maxSurge"] == 0
            if rolling:
                surging[name] = bool(rolling.get("maxSurge"))
            assert not surging.get(name) or step.what in ("change_spec", "change_template", "delete_pod")


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
