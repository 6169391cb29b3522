"""Quantities: each form, and what is none."""

from __future__ import annotations

from decimal import Decimal

import pytest

from oarlock.sandbox.apiserver.text.quantities import parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("110", "110"),
        (2, "2"),
        (0.5, "0.5"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+1", "1"),
        ("-1", "-1"),
        ("100m", "0.1"),
        ("1u", "0.000001"),
        ("1n", "0.000000001"),
        ("2k", "2000"),
        ("1M", "1000000"),
        ("1G", "1000000000"),
        ("1E", "1000000000000000000"),
        ("1Ki", "1024"),
        ("1.5Gi", "1610612736"),
        ("2Ei", "2305843009213693952"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("5e-1", "0.5"),
    ],
)
def test_reads(text: str | int | float, value: str) -> None:
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "two", "1 Gi", "1K", "1ki", "1mi", ".", "1.2.3", "Gi", "1e", "1e3Ki", "--1"])
def test_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        parse_quantity(text)
