"""Every upstream case that is a decision about a DaemonSet's pods has a test that names its number."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__)
CASES = [f"26.1.{n}" for n in (*range(13, 19), *range(20, 45), 46, 47)] + [f"26.3.{n}" for n in (2, 3, 4)]
FOUND = {
    case
    for path in HERE.parent.glob("test_*.py")
    if path != HERE
    for case in re.findall(r"\b26\.\d\.\d+\b", path.read_text())
}


@pytest.mark.parametrize("case", CASES)
def test_case_has_a_place(case):
    """A case cannot be lost by editing a table."""
    assert case in FOUND
