"""The image, its steps followed once: the sources it copies, the wheel, the environment at /opt/oarlock."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.image import composing
from tests.image.containers import Container, Network, why_not
from tests.image.dockerfile import Stage, stages
from tests.image.image_parts import PREFIX, Image


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Every RUN line of the Dockerfile but the one that installs Debian's packages, in containers of their own. Of
    several processes that run tests one follows them, and the others wait for it.
    """
    reason = why_not()
    if reason and not os.environ.get("CI"):
        pytest.skip(reason)
    assert not reason, reason
    build, final = stages(ROOT / "Dockerfile")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "image"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            _follow(build, folder)
            (folder / "made").touch()
    return Image(folder / "prefix", final)


def _follow(build: Stage, folder: Path) -> None:
    source, dist, prefix = (folder / name for name in ("source", "dist", "prefix"))
    for each in (source, dist, prefix):
        each.mkdir()
    for *wanted, to in build.copies:
        for name in wanted:
            _copy(ROOT / name, source / to / Path(name).name if to.endswith("/") else source / to)
    prefix.chmod(0o755)
    assert len(build.runs) == 3, "a new step has to be followed here too"
    python = Path(sys.executable).resolve()
    registry = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    for run in build.runs:
        container = Container(
            ["sh", "-c", f"cd {build.workdir} && {run}"],
            environment={**registry, "PATH": os.environ["PATH"], "PYTHON": str(python), "HOME": "/root"},
            mounts=[f"{source}:/src:rw", f"{dist}:/dist:rw", f"{prefix}:{PREFIX}:rw"],
            user=0,
            read_only=False,
        )
        code = container.process.wait(240)
        said = container.said()
        container.kill()
        assert code == 0, said


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    made = Network(tmp_path)
    yield made
    made.close()


def _copy(what: Path, to: Path) -> None:
    """As COPY does, links as links, less what .dockerignore leaves out."""
    to.parent.mkdir(parents=True, exist_ok=True)
    assert f"!{what.relative_to(ROOT).parts[0]}" in (ROOT / ".dockerignore").read_text().splitlines(), what
    if what.is_dir():
        shutil.copytree(what, to, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    else:
        shutil.copy(what, to)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of compose/ to be prepared."""
    return composing.copy(tmp_path)
