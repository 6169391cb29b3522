"""The rule for size writes holds in every small case; each changed rule is found wanting, and by its change alone."""

import pytest

from tests.model.rollout.cases import BUYS_NOTHING, LIVELY, MUTANTS, SAFE, Case
from tests.model.rollout.rule import Rule

LIMIT = 100_000


@pytest.mark.parametrize("case", [*SAFE, *LIVELY], ids=lambda case: case.name)
def test_the_rule_holds(case: Case) -> None:
    result = case.search(LIMIT)

    assert result.holds, (result.why, result.trace, result.example)
    assert not result.cut, "the case is too large to prove anything here"


@pytest.mark.parametrize("case", MUTANTS, ids=lambda case: case.name)
def test_a_changed_rule_is_found_wanting(case: Case) -> None:
    assert not case.search(LIMIT).holds


@pytest.mark.parametrize("case", BUYS_NOTHING, ids=lambda case: case.name)
def test_a_rule_that_is_only_slower_or_faster_breaks_no_limit(case: Case) -> None:
    assert case.search(LIMIT).holds


def test_what_is_found_is_the_change() -> None:
    already = {case._replace(name="") for case in (*SAFE, *LIVELY)}
    for case in {case._replace(name="", rule=Rule(case.rule.strategy)): None for case in MUTANTS}:
        result = case.search(LIMIT) if case not in already else None
        assert result is None or result.holds, (case, result.why, result.trace, result.example)
