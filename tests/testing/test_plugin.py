"""The pytest plugin as an environment has it: pytest runs of their own over files as users write them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

CONFTEST = """
import pytest


@pytest.fixture(scope="session")
def cluster_options():
    return {"nodes": 5, "redis": False}
"""
TESTS = """
import json
import pathlib
import pytest


@pytest.mark.parametrize("number", range(4))
def test_it(cluster, number):
    assert len(cluster.list("nodes")) == 5
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}})
    facts = {"url": cluster.url, "namespace": cluster.namespace, "kubeconfig": str(cluster.kubeconfig)}
    pathlib.Path(f"said-{number}").write_text(json.dumps(facts))


def test_failing(cluster):
    cluster.wait("deployment/none", timeout_s=0.05)
"""


def run_pytest(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)
    return done.stdout + done.stderr


def test_it_is_registered() -> None:
    (ours,) = [each for each in entry_points(group="pytest11") if each.name == "oarlock"]
    assert ours.value == "oarlock.testing.pytest_plugin"


def test_it_costs_nothing_until_it_is_used() -> None:
    code = (
        "import json, sys, oarlock.testing.pytest_plugin\n"
        "print(json.dumps([each for each in sys.modules if each.split('.')[0] in ('oarlock', 'aiohttp', 'redis')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["oarlock", "oarlock.testing", "oarlock.testing.pytest_plugin"]


def test_processes_have_clusters_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    said = run_pytest(tmp_path, "-n", "2")
    assert "1 failed, 4 passed" in said, said
    assert "NotInTime: deployment/none in namespace test-failing" in said
    assert "def wait" not in said, "the test's own line is what its reader wants to see"
    facts = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("said-*"))]
    assert len({each["url"] for each in facts}) == 2
    assert len({(each["url"], each["namespace"]) for each in facts}) == 4
    assert not any(Path(each["kubeconfig"]).exists() for each in facts)
