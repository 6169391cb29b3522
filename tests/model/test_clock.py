"""An entry ends only when nothing of it may land, and it does end."""

import pytest

from tests.model.clock import ClockRule, ends_too_early, ticks_until_over


def test_no_entry_ends_while_a_send_of_it_may_land() -> None:
    states, trace = ends_too_early(ClockRule(repeats=5))

    assert states > 100
    assert trace == ()


@pytest.mark.parametrize(
    "rule", [ClockRule(stamped="record"), ClockRule(marks_repeats=False), ClockRule(deadline=False)], ids=str
)
def test_a_clock_that_is_over_too_early_is_found(rule: ClockRule) -> None:
    assert ends_too_early(rule)[1]


def test_every_entry_is_over_some_time() -> None:
    assert ticks_until_over(ClockRule(repeats=5)) is not None


@pytest.mark.parametrize("rule", [ClockRule(renewed=True), ClockRule(repeats=None)], ids=str)
def test_a_clock_that_is_set_anew_without_end_is_found(rule: ClockRule) -> None:
    assert ticks_until_over(rule) is None
