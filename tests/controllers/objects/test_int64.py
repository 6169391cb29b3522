"""Integers in text, as Go reads them."""

import pytest

from oarlock.controllers.objects.wire_parts import parse_int64


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("-0", 0, id="minus zero"),
        pytest.param("42", 42, id="digits"),
        pytest.param("+42", 42, id="plus"),
        pytest.param("-42", -42, id="minus"),
        pytest.param("007", 7, id="leading zeros"),
        pytest.param("0" * 5000 + "7", 7, id="very many of them"),
        pytest.param(str(2**63 - 1), 2**63 - 1, id="the largest"),
        pytest.param(str(2**63), None, id="too large"),
        pytest.param(str(-(2**63)), -(2**63), id="the smallest"),
        pytest.param(str(-(2**63) - 1), None, id="too small"),
        pytest.param("9" * 5000, None, id="more digits than int() takes"),
        pytest.param("", None, id="nothing"),
        pytest.param("+", None, id="a sign alone"),
        pytest.param("+-5", None, id="two signs"),
        pytest.param("1_000", None, id="underscore"),
        pytest.param(" 5", None, id="blank before"),
        pytest.param("5\n", None, id="line end"),
        pytest.param("0x10", None, id="hexadecimal"),
        pytest.param("1.5", None, id="a fraction"),
        pytest.param("٣", None, id="digits of another script"),
        pytest.param("²", None, id="superscript"),
    ],
)
def test_parse_int64(text, number):
    """A sign, ASCII digits, 64 bits; nothing else."""
    assert parse_int64(text) == number
