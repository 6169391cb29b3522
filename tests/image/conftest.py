"""The image, its steps followed once: the sources it copies, the wheel, the environment at /opt/oarlock."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.image import composing
from tests.image.containers import Container, Network, why_not
from tests.image.dockerfile import stages
from tests.image.image_parts import PREFIX, Image


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Every RUN line of the Dockerfile but the one that installs Debian's packages, in containers of their own."""
    reason = why_not()
    if reason and not os.environ.get("CI"):
        pytest.skip(reason)
    assert not reason, reason
    build, final = stages(ROOT / "Dockerfile")
    source, dist, prefix = (tmp_path_factory.mktemp(name) for name in ("source", "dist", "prefix"))
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
    return Image(prefix, final)


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
