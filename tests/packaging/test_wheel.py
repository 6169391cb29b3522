"""What is released: the wheel, the source archive, and the types that they bring."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging.installing import ROOMS, ROOT, environment, run, wheel_of

pytestmark = pytest.mark.timeout(300)


def content(wheel: Path) -> dict[str, bytes]:
    """path -> bytes, without what says how the wheel was made."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def test_every_room_is_a_package_of_oarlock() -> None:
    as_named = {
        name: name
        for name in ("broker", "chaos", "cli", "cluster", "controllers", "sandbox", "sdk", "testing", "workers")
    }
    assert as_named | {"queue": "keyed_queue"} == ROOMS
    for room, folder in ROOMS.items():
        assert os.readlink(ROOT / "src/oarlock" / room) == f"../../{folder}"
        assert (ROOT / folder / "__init__.py").exists()


def packaged(pattern: str) -> set[str]:
    """Files of the rooms, by their names in the wheel."""
    return {
        f"oarlock/{room}/{path.relative_to(ROOT / folder)}"
        for room, folder in ROOMS.items()
        for path in (ROOT / folder).rglob(pattern)
    }


def test_the_wheel_holds_oarlock_and_nothing_else(wheel: Path) -> None:
    scripts = packaged("*.lua")
    assert len(scripts) > 30
    page = packaged("static/*.*") | packaged("static/*/*.*")
    assert {"oarlock/cli/board/static/index.html", "oarlock/cli/board/static/vendor/uPlot.LICENSE"} < page
    assert content(wheel).keys() == packaged("*.py") | scripts | page | {"oarlock/__init__.py", "oarlock/py.typed"}


def test_the_source_archive_builds_the_same_wheel(source: Path, wheel: Path, tmp_path: Path) -> None:
    build = "import sys; from setuptools.build_meta import build_sdist; print(build_sdist(sys.argv[1]))"
    name = run(sys.executable, "-c", build, tmp_path, cwd=source).splitlines()[-1]
    assert content(wheel_of(tmp_path / name, tmp_path / "dist")) == content(wheel)


TYPED = """
from oarlock.broker.keys import Keys
from oarlock.controllers.objects.model import Pod

reveal_type(Keys(0).of("y"))
reveal_type(Pod.name)
"""


def test_types_are_seen_by_those_who_use_it(wheel: Path, tmp_path: Path) -> None:
    installed = environment(tmp_path / "venv")
    installed.install(wheel)
    (tmp_path / "theirs.py").write_text(TYPED)
    mypy = [sys.executable, "-m", "mypy", "--python-executable", str(installed.python), "--cache-dir", "cache"]
    told = subprocess.run([*mypy, "theirs.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.stdout.count('Revealed type is "str"') == 2, told.stdout
