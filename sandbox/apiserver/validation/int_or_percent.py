"""Numbers that may be given as a share: 3, or `10%`.

Upstream: pkg/apis/apps/validation/validation.go (ValidatePositiveIntOrPercent, IsNotMoreThan100Percent,
getIntOrPercentValue).
"""

from __future__ import annotations

from typing import Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.validation.values import not_negative

_PERCENT_MAX: Final = 100
_DIGITS_MAX: Final = 18  # more is too much, whatever it is


def int_or_percent_errors(value: int | str, path: str) -> list[FieldError]:
    """A number from 0, or a percentage from 0% to 100%."""
    if isinstance(value, int):
        return not_negative(value, path)
    problems = names.percentage(value)
    if not problems and int_or_percent_value(value) > _PERCENT_MAX:
        problems = (f"must not be greater than {_PERCENT_MAX}%",)
    return [FieldError.invalid(path, value, problem) for problem in problems]


def int_or_percent_value(value: int | str) -> int:
    """The number, or that of the percentage; 0 for what is neither."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if not (digits.isascii() and digits.isdigit()):
        return 0
    return int(digits) if len(digits) <= _DIGITS_MAX else _PERCENT_MAX + 1
