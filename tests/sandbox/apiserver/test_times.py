"""Timestamps as Python's clients send them back: with an offset where the API wrote `Z`."""

from __future__ import annotations

import pytest

from oarlock.sandbox.apiserver.text.times import same_moment, unix_seconds


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", True),
        ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z", True),
        ("2026-01-02T04:04:05+01:00", "2026-01-02T03:04:05Z", True),
        ("2026-01-02T03:04:05.250000+00:00", "2026-01-02T03:04:05.25Z", True),
        ("2026-01-02T03:04:06+00:00", "2026-01-02T03:04:05Z", False),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05Z", False),
        ("", "2026-01-02T03:04:05Z", False),
        ("yesterday", "2026-01-02T03:04:05Z", False),
    ],
)
def test_two_forms_of_one_moment(one: str, other: str, same: bool) -> None:
    assert same_moment(one, other) is same


def test_a_time_without_an_offset_is_no_moment() -> None:
    with pytest.raises(ValueError, match="no offset"):
        unix_seconds("2026-01-02T03:04:05")
