"""docs/operators.md, done as its reader would: the files written, the tests run, the commands given."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from oarlock.sdk.loading import load
from oarlock.sdk.types.crd import crds_of, models_of
from tests import ROOT
from tests.e2e.e2e_helpers import environment, until
from tests.e2e.e2e_operators import Running
from tests.testing.test_plugin import run_pytest

PAGE = (ROOT / "docs" / "operators.md").read_text()
FENCES = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
COMMANDS = [line.partition("  #")[0].strip() for line in re.findall(r"^ {4}(\w.*)$", PAGE, flags=re.MULTILINE)]


def write(folder: Path, count: int | None = None) -> None:
    """Every file of the page; of two with one name the later one, as for its reader."""
    for name, text in FENCES[:count]:
        (folder / name).write_text(text)


def test_every_block_is_a_file() -> None:
    assert len(FENCES) == len(re.findall(r"^```\w", PAGE, flags=re.MULTILINE))


CONFTESTS = [at for at, (name, _) in enumerate(FENCES) if name == "conftest.py"]


@pytest.mark.parametrize(("files", "tests"), [(CONFTESTS[1], 6), (None, 7)], ids=["the first half", "all"])
def test_the_tests_of_the_page(tmp_path: Path, files: int | None, tests: int) -> None:
    write(tmp_path, files)
    said = run_pytest(tmp_path)
    assert f"{tests} passed" in said, said


@pytest.mark.parametrize("name", ["sites.py", "book.py", "record.py", "theme.py", "lamp.py"])
def test_the_operators_of_the_page(name: str, tmp_path: Path) -> None:
    write(tmp_path)
    (definition,) = load(str(tmp_path / name))
    assert definition.name == {"sites": "site", "theme": "page"}.get(name[:-3], name[:-3])
    assert len(crds_of(models_of([definition]))) == 1


def oarlock(folder: Path, command: str) -> str:
    words = [sys.executable, "-m", "oarlock.cli", *command.split()[1:]]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_definitions_and_rights(tmp_path: Path) -> None:
    write(tmp_path)
    crd = yaml.safe_load(oarlock(tmp_path, next(each for each in COMMANDS if each == "oarlock crd sites.py")))
    assert crd["metadata"]["name"] == "sites.example.com"
    rbac = next(each for each in COMMANDS if each.startswith("oarlock rbac")).partition(" |")[0]
    assert [each["kind"] for each in yaml.safe_load_all(oarlock(tmp_path, rbac))].count("ClusterRole") == 2


@pytest.mark.kubectl
@pytest.mark.timeout(400)  # its waits together are longer than a test may take as a rule
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_commands_of_the_page(tmp_path: Path) -> None:
    write(tmp_path)
    command = next(each for each in COMMANDS if each.startswith("oarlock dev"))
    words = [str(tmp_path / word) if "." in word else word for word in command.split()[1:]]
    dev = Running(tmp_path / "dev.log", *words)
    try:
        until(lambda: "KUBECONFIG=" in dev.said, 60, "the cluster is up")
        until(lambda: "status.ready=2" in dev.said, 60, "the site is ready")
        told = kubectl_all(re.findall(r"KUBECONFIG=(\S+)", dev.said)[0], dev)
    finally:
        code = dev.stop(signal.SIGINT)
        print(dev.said)
    assert code == 0
    assert re.search(r"shop +nginx:1 +2 ", told["kubectl get sites"])
    assert "service/shop" in told["kubectl get deployments,services,pods"]
    assert "Kind:         Site" in told["kubectl describe site shop"]


def kubectl_all(kubeconfig: str, dev: Running) -> dict[str, str]:
    """What each command of the page said, in order."""
    told: dict[str, str] = {}
    environ: dict[str, Any] = environment(KUBECONFIG=kubeconfig)
    for command in COMMANDS:
        if command.startswith("kubectl"):
            words = [word.strip("'") for word in command.split()]
            done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, f"{command}: {done.stderr}"
            told[command] = done.stdout
        if "replicas" in command and "patch" in command:
            until(lambda: "status.ready=3" in dev.said, 60, "the third is ready")
        if command.startswith("kubectl delete service"):
            until(lambda: dev.said.count("+ Service default/shop") >= 2, 60, "the Service is back")
        if command.startswith("kubectl delete site"):
            until(lambda: "- Deployment default/shop" in dev.said, 60, "its Deployment is gone")
    return told
