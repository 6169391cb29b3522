"""Reads the tables of a page."""

from __future__ import annotations


def first_cells(text: str) -> list[str]:
    """The first cells of the rows of its tables."""
    return [line.split("|")[1].strip().strip("`") for line in text.splitlines() if line.startswith("| `")]
