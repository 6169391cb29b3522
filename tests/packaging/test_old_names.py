"""What users of the last release have written down goes on for one more: from a checkout, and in the image."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.installing import ROOT, Environment, environment, run

OLD = {"workers.rq_worker": "FleetWorker", "workers.rq_queue": "KeyQueue"}
SAME = """
import sys
from rq.utils import import_attribute

assert import_attribute(sys.argv[1]) is import_attribute("oarlock." + sys.argv[1])
"""


@pytest.fixture(scope="module")
def image(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment to which the image's step was applied."""
    made = environment(tmp_path_factory.mktemp("venv"))
    made.install(wheel)
    run("sh", "image/steps.sh", "old-names", made.folder, "image/old_names", cwd=ROOT)
    return made


def said(python: str | Path, *words: str, cwd: Path) -> list[str]:
    """The lines on stderr of a program that goes well."""
    done = subprocess.run([str(python), *words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


@pytest.mark.parametrize("module", OLD)
def test_a_name_leads_to_the_same_class_and_one_line(module: str, image: Environment, tmp_path: Path) -> None:
    warning = [f"oarlock: {module} is oarlock.{module} now; the next release drops the old name"]
    name = f"{module}.{OLD[module]}"
    assert said(sys.executable, "-c", SAME, name, cwd=ROOT) == warning
    assert said(image.python, "-c", SAME, name, cwd=tmp_path) == warning


def test_the_program_that_compose_files_name(image: Environment, tmp_path: Path) -> None:
    warning = ["oarlock: cluster.embedded is oarlock.sandbox.apiserver now; the next release drops the old name"]
    assert said(image.python, "-m", "cluster.embedded", "--help", cwd=tmp_path) == warning


def test_a_project_with_such_a_folder_comes_first(image: Environment, tmp_path: Path) -> None:
    """The old names are looked for last: what an image built on ours adds is found before them."""
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers/__init__.py").touch()
    check = "import sys, workers; assert workers.__path__ == [sys.argv[1]], workers.__path__"
    assert said(image.python, "-c", check, str(tmp_path / "workers"), cwd=tmp_path) == []


def test_the_new_names_say_nothing(image: Environment, tmp_path: Path) -> None:
    for module in OLD:
        assert said(image.python, "-c", f"import oarlock.{module}", cwd=tmp_path) == []
