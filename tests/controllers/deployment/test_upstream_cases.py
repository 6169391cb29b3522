"""Every upstream case that is a decision about a Deployment has a test that names its number."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__)
# 23.6.5 and 23.6.8 are about what wakes a Deployment, 23.6.7 about where pods are looked for: see deviations.md.
LAST = {1: 21, 2: 4, 3: 2, 4: 2, 5: 18, 6: 8}
ELSEWHERE = {"23.6.5", "23.6.7", "23.6.8"}
CASES = sorted({f"23.{part}.{n}" for part, last in LAST.items() for n in range(1, last + 1)} - ELSEWHERE)
FOUND = {
    case
    for path in HERE.parent.rglob("test_*.py")
    if path != HERE
    for case in re.findall(r"\b23\.\d\.\d+\b", path.read_text())
}


@pytest.mark.parametrize("case", CASES)
def test_case_has_a_place(case):
    """A case cannot be lost by editing a table."""
    assert case in FOUND
