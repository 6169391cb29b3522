"""CI runs with the oldest Python of the machine that is promised to do."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import ROOT

SCRIPT = (ROOT / ".ci" / "oldest_python.sh").read_text()


def chosen(folder: Path, pythons: Sequence[str]) -> tuple[int, str]:
    """Exit code and choice where these are there: "FOLDER/NAME VERSION", usr/ for /usr/bin/ and path/ for PATH."""
    for name in ("usr", "path"):
        (folder / name).mkdir()
    for tool in ("sort", "head"):
        (folder / "path" / tool).symlink_to(shutil.which(tool) or tool)
    for each in pythons:
        name, version = each.split()
        told = f"echo {version} {folder / name}" if version >= "3.11" else "true"
        (folder / name).write_text(f"#!/bin/sh\n{told}\n")
        (folder / name).chmod(0o755)
    script = folder / "oldest_python.sh"
    script.write_text(SCRIPT.replace("/usr/bin/", f"{folder}/usr/"))
    environment = {"PATH": f"{folder}/path"}
    done = subprocess.run(["/bin/sh", str(script)], capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout.strip().removeprefix(f"{folder}/") or done.stderr.strip()


@pytest.mark.parametrize(
    ("pythons", "choice"),
    [
        (["path/python3 3.11.7", "path/python3.11 3.11.7"], "path/python3"),
        (["path/python3 3.11.7", "usr/python3 3.11.2"], "usr/python3"),
        (["path/python3 3.11.10", "usr/python3.11 3.11.9"], "usr/python3.11"),
        (["path/python3 3.14.0", "usr/python3.13 3.13.5"], "usr/python3.13"),
        (["usr/python3 3.09.2", "path/python3.12 3.12.1"], "path/python3.12"),
    ],
    ids=["one", "Debian's before that of PATH", "by number, not by letter", "newer ones", "the system's is too old"],
)
def test_the_oldest_is_chosen(pythons: list[str], choice: str, tmp_path: Path) -> None:
    assert chosen(tmp_path, pythons) == (0, choice)


def test_that_there_is_none_is_said(tmp_path: Path) -> None:
    assert chosen(tmp_path, ["usr/python3 3.09.2"]) == (2, "oldest_python.sh: there is no Python 3.11 or newer")
