"""docs/from-kopf.md: its port runs and passes the tests of the page, and what it says of kopf is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import ROOT
from tests.testing.test_plugin import run_pytest

PAGE = (ROOT / "docs" / "from-kopf.md").read_text()
FENCES = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_port(tmp_path: Path) -> None:
    for name, text in FENCES:
        (tmp_path / name).write_text(text)
    said = run_pytest(tmp_path)
    assert "2 passed" in said, said


def test_what_it_says_of_kopf() -> None:
    kopf = pytest.importorskip("kopf", reason="pip install 'oarlock[kopf]'")
    names = re.findall(
        r"`(?:@?kopf\.)?(on\.\w+|adopt|TemporaryError|PermanentError|timer|daemon|index|event|info)\b", PAGE
    )
    for name in set(names):
        found = kopf
        for part in name.split("."):
            found = getattr(found, part)
    assert kopf.OperatorSettings().persistence.finalizer in PAGE
    child: dict[str, object] = {}
    owner = kopf.Body({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u", "namespace": "n"}})
    kopf.adopt(child, owner)
    assert child["metadata"]["generateName"] == "a-"  # type: ignore[index]
    assert child["metadata"]["ownerReferences"][0]["controller"] is True  # type: ignore[index]
