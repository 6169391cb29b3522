"""A user's project whose folders are called as ours are: both import their own, however each was installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.installing import ROOMS, Environment, environment, sources

pytestmark = pytest.mark.timeout(300)

WORKER, QUEUE = "oarlock.workers.rq_worker.FleetWorker", "oarlock.workers.rq_queue.KeyQueue"
PROJECT = f"""
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "theirs"
version = "1"
[tool.setuptools]
packages = {list(ROOMS.values())}
"""
CHECK = f"""
import importlib, sys
from pathlib import Path
from rq.utils import import_attribute

theirs, ours = Path(sys.argv[1]), Path(sys.argv[2])
for room, folder in {ROOMS}.items():
    assert Path(importlib.import_module(folder).__file__) == theirs / folder / "__init__.py", room
    assert importlib.import_module(folder).WHOSE == "theirs"
    assert ours in Path(importlib.import_module("oarlock." + room).__file__).parents, room
assert import_attribute("workers.rq_worker.Mine").WHOSE == "theirs"
for name in ("{WORKER}", "{QUEUE}"):
    assert import_attribute(name).__module__.startswith("oarlock.workers."), name
print("each its own")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("theirs")
    for room in ROOMS.values():
        (folder / room).mkdir()
        (folder / room / "__init__.py").write_text('WHOSE = "theirs"\n')
    (folder / "workers/rq_worker.py").write_text('class Mine:\n    WHOSE = "theirs"\n')
    (folder / "pyproject.toml").write_text(PROJECT)
    return folder


@pytest.fixture(scope="module", params=["wheel", "editable"])
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = environment(tmp_path_factory.mktemp("venv"))
    if request.param == "wheel":
        made.install(wheel)
    else:
        made.install("-e", sources(made.folder / "checkout"))
    return made


@pytest.mark.parametrize("theirs", ["started in its folder", "installed editable"])
def test_both_import_their_own(installed: Environment, project: Path, theirs: str, tmp_path: Path) -> None:
    started_in = project
    if theirs == "installed editable":
        installed.install("-e", project)
        started_in = tmp_path
    (started_in / "check.py").write_text(CHECK)
    assert installed.says("python", "check.py", project, installed.folder, cwd=started_in) == "each its own\n"
    for command in (["oarlock"], ["python", "-m", "oarlock.cli"]):
        assert "run by a fleet" in installed.says(*command, "--help", cwd=started_in)
        assert "--workers" in installed.says(*command, "worker", "--help", cwd=started_in)
