"""The examples of docs/testing-your-code.md, run as a user would: all of them in one file, by pytest."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import ROOT
from tests.testing.test_plugin import run_pytest


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.skipif(find_spec("kubernetes") is None, reason="the official client is not installed")
def test_the_examples_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs/testing-your-code.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    tests = len(re.findall(r"^def test_", "".join(examples), flags=re.MULTILINE))
    assert tests >= 8
    (tmp_path / "test_page.py").write_text("\n\n".join(examples))
    said = run_pytest(tmp_path)
    assert f"{tests} passed" in said, said
