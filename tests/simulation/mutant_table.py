"""Every mechanism that the simulations and the models take out, and the test that fails unless this is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.model import cases
from tests.model.rollout import cases as rollout_cases
from tests.simulation import test_daemon_mutants, test_mutants, test_rollout_mutants, test_whole_mutants

SIMULATED: tuple[tuple[Mapping[str, Any], str], ...] = (
    (test_mutants.MUTANTS, "test_mutants"),
    (test_daemon_mutants.MUTANTS, "test_daemon_mutants"),
    (test_rollout_mutants.MUTANTS, "test_rollout_mutants"),
    (test_whole_mutants.MUTANTS, "test_whole_mutants"),
)
SEARCHED = ((cases.MUTANTS, "test_rule"), (rollout_cases.MUTANTS, "rollout/test_rule"))


class Row(NamedTuple):
    """What is taken out, and the id of the test."""

    name: str
    test: str


def rows() -> list[Row]:
    """Simulated ones first, then those of the models."""
    found = [
        Row(name, f"tests/simulation/{file}.py::test_is_missed[{name}]") for table, file in SIMULATED for name in table
    ]
    for table, file in SEARCHED:
        found += [
            Row(each.name, f"tests/model/{file}.py::test_a_changed_rule_is_found_wanting[{each.name}]")
            for each in table
        ]
    return found
