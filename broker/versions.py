"""Compares resourceVersions as the scripts in Redis do: by length, then as text."""

from __future__ import annotations


def newer(one: str, other: str) -> bool:
    """Whether ``one`` comes after ``other``. The empty text comes before all."""
    return one > other if len(one) == len(other) else len(one) > len(other)


def latest(one: str, other: str) -> str:
    """The later of the two."""
    return max(one, other) if len(one) == len(other) else max(one, other, key=len)
