"""The rule holds in every small case; each changed rule is found wanting, and by its change alone."""

import pytest

from tests.model.cases import LIVELY, MUTANTS, SAFE, Case

LIMIT = 100_000


def unchanged(case: Case) -> Case:
    """The case of a changed rule under the rule itself."""
    kind = case.rule.kind
    kind = kind._replace(passes=int(not (kind.strict or kind.bound)))
    drain = case.rule.drain or not (kind.strict or kind.bound)
    return case._replace(name="", rule=type(case.rule)(kind, drain=drain))


@pytest.mark.parametrize("case", [*SAFE, *LIVELY], ids=lambda case: case.name)
def test_the_rule_holds(case: Case) -> None:
    result = case.search(LIMIT)

    assert result.holds, (result.why, result.trace, result.example)
    assert not result.cut, "the case is too large to prove anything here"


@pytest.mark.parametrize("case", MUTANTS, ids=lambda case: case.name)
def test_a_changed_rule_is_found_wanting(case: Case) -> None:
    assert not case.search(LIMIT).holds


def test_what_is_found_is_the_change() -> None:
    already = {case._replace(name="") for case in (*SAFE, *LIVELY)}
    for case in {unchanged(case): None for case in MUTANTS}:
        result = case.search(LIMIT) if case not in already else None
        assert result is None or result.holds, (case.rule, result.why, result.trace, result.example)
