"""Small rules used by many fields: ranges, choices, shares, quantities, uniqueness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.text.quantities import BAD_QUANTITY, parse_quantity

INT32_MAX: Final = 2**31 - 1
PORT_MAX: Final = 65_535
_PERCENT_MAX: Final = 100
_PERCENT_DIGITS_MAX: Final = 18  # more is too much, whatever it is
NOT_NEGATIVE: Final = "must be greater than or equal to 0"


def not_negative(value: int | None, path: str) -> list[FieldError]:
    """An absent value is fine."""
    return [FieldError.invalid(path, value, NOT_NEGATIVE)] if value is not None and value < 0 else []


def not_decremented(value: int | None, old: int | None, path: str) -> list[FieldError]:
    """A counter that was there may neither sink nor go."""
    if old is None or (value is not None and value >= old):
        return []
    return [FieldError.invalid(path, value or 0, "cannot be decremented")]


def within(value: int, low: int, high: int, path: str) -> list[FieldError]:
    """`low` and `high` are themselves allowed."""
    if low <= value <= high:
        return []
    return [FieldError.invalid(path, value, f"must be between {low} and {high}, inclusive")]


def one_of(value: str | None, choices: Sequence[str], path: str) -> list[FieldError]:
    """A value that must be there and be one of `choices`."""
    if value in choices:
        return []
    return [FieldError.unsupported(path, value, choices)] if value else [FieldError.required(path)]


def named(value: str | None, check: names.Checker, path: str) -> list[FieldError]:
    """A name that must be there and pass `check`."""
    if not value:
        return [FieldError.required(path)]
    return [FieldError.invalid(path, value, problem) for problem in check(value)]


def optionally_named(value: str | None, check: names.Checker, path: str) -> list[FieldError]:
    """A name that may be absent or empty, and else has to pass `check`."""
    return named(value, check, path) if value else []


def unique(values: Iterable[tuple[str, Any]]) -> list[FieldError]:
    """(path, value) pairs of which no value may come twice; empty ones do not count."""
    seen: set[Any] = set()
    errors = []
    for path, value in values:
        if value in seen:
            errors.append(FieldError.duplicate(path, value))
        if value:
            seen.add(value)
    return errors


def quantity_errors(quantities: Mapping[str, Any], path: str) -> list[FieldError]:
    """Resource lists: qualified names with quantities of at least 0."""
    errors: list[FieldError] = []
    for resource, value in quantities.items():
        here = f"{path}[{resource}]"
        errors += [FieldError.invalid(here, resource, problem) for problem in names.qualified_name(resource)]
        try:
            amount = parse_quantity(value)
        except ValueError:
            errors.append(FieldError.invalid(here, value, BAD_QUANTITY))
            continue
        if amount < 0:
            errors.append(FieldError.invalid(here, str(value), NOT_NEGATIVE))
    return errors


def int_or_percent_errors(value: int | str, path: str) -> list[FieldError]:
    """A number from 0, or a percentage from 0%.

    Upstream: pkg/apis/apps/validation/validation.go (ValidatePositiveIntOrPercent), as are the next two
    (IsNotMoreThan100Percent, getIntOrPercentValue).
    """
    if isinstance(value, int):
        return not_negative(value, path)
    return [FieldError.invalid(path, value, problem) for problem in names.percentage(value)]


def share_of_all_errors(value: int | str, path: str) -> list[FieldError]:
    """A percentage above 100%; a number is none."""
    if isinstance(value, int) or names.percentage(value) or int_or_percent_value(value) <= _PERCENT_MAX:
        return []
    return [FieldError.invalid(path, value, f"must not be greater than {_PERCENT_MAX}%")]


def int_or_percent_value(value: int | str) -> int:
    """The number, or that of the percentage; 0 for what is neither."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if not (digits.isascii() and digits.isdigit()):
        return 0
    return int(digits) if len(digits) <= _PERCENT_DIGITS_MAX else _PERCENT_MAX + 1
