"""Every upstream case has a place: a test that names its number, or a line in deviations.md."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = [f"11.{part}.{n}" for part, last in ((2, 29), (3, 5), (4, 17)) for n in range(1, last + 1)]
RANGE = re.compile(r"(11\.\d)\.(\d+) to \1\.(\d+)")


def mentioned():
    text = "\n".join(
        p.read_text() for p in HERE.rglob("*") if p.suffix in (".py", ".md") and p.name != Path(__file__).name
    )
    found = set(re.findall(r"\b11\.[234]\.\d+\b", text))
    for part, first, last in RANGE.findall(text):
        found |= {f"{part}.{n}" for n in range(int(first), int(last) + 1)}
    return found


@pytest.mark.parametrize("case", CASES)
def test_case_has_a_place(case):
    """A case cannot be lost by editing a table."""
    assert case in mentioned()
