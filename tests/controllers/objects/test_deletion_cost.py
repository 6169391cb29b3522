"""The annotation that makes a pod dearer or cheaper to delete."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.controllers.objects.wire import parse_deletion_cost as parse


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        (None, 0), ("", 0), ("0", 0), ("100", 100), ("-100", -100), ("-0", 0), ("-05", -5),
        ("2147483647", 2147483647), ("-2147483648", -2147483648),
        ("2147483648", 0), ("-2147483649", 0), ("1" * 5_000, 0), ("-" + "0" * 5_000 + "7", -7),
        ("+10", 0), ("008", 0), ("00", 0), (" 1", 0), ("1 ", 0), ("1.5", 0), ("1_000", 0), ("-", 0), ("--1", 0),
        ("1e3", 0), ("0x10", 0), ("\N{ARABIC-INDIC DIGIT ONE}", 0), ("1\N{ARABIC-INDIC DIGIT ONE}", 0),
    ],
)  # fmt: skip
def test_syntax(text, cost):
    """Anything malformed or out of range counts as 0, silently."""
    assert parse(text) == cost


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_cost_in_range_is_read(cost):
    """What the API accepts is what ranks."""
    assert parse(str(cost)) == cost


@given(st.text(max_size=12))
def test_never_fails(text):
    """Whatever a user writes, there is a cost."""
    assert -(2**31) <= parse(text) <= 2**31 - 1
