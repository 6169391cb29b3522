"""`oarlock nodes run` as a process at an API server that has no nodes of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from oarlock.sandbox.apiserver.kubeconfig import write_kubeconfig
from tests import ROOT
from tests.cli.cli_helpers import call, problems

WAIT_S = 30.0


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Ended by SIGTERM, if it has not ended by then; it has to end well."""
    running = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        yield running
        running.send_signal(signal.SIGTERM)
        assert running.wait(WAIT_S) == 0
    finally:
        running.kill()
        running.wait()


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with process("oarlock.sandbox.apiserver", "--state-dir", str(tmp_path_factory.mktemp("api"))) as server:
        assert server.stdout is not None
        yield Path(json.loads(server.stdout.readline())["kubeconfig"])


@contextmanager
def nodes_run(kubeconfig: Path, *arguments: str) -> Iterator[str]:
    """What it says once it is ready."""
    with process("oarlock.cli", "nodes", "run", "--kubeconfig", str(kubeconfig), *arguments) as running:
        assert running.stdout is not None
        yield running.stdout.readline()


def names(kubeconfig: Path) -> list[str]:
    listed = call("nodes", "list", "-o", "json", "--kubeconfig", str(kubeconfig))
    assert listed.exit_code == 0, listed.stderr
    found: list[dict[str, Any]] = json.loads(listed.stdout)
    return [node["name"] for node in found if node["ready"] == "True" and not node["taints"]]


def until(happened: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < ends_s
        time.sleep(0.05)


def test_nodes_come_stay_and_come_back(kubeconfig: Path) -> None:
    with nodes_run(kubeconfig, "--count", "3") as said:
        assert said.startswith("ready: 3 nodes, node-0 to node-2 at http://127.0.0.1:")
        assert names(kubeconfig) == ["node-0", "node-1", "node-2"]
        added = call("nodes", "add", "extra", "--kubeconfig", str(kubeconfig))
        assert added.exit_code == 0, added.stderr
        until(lambda: "extra" in names(kubeconfig))
    assert call("nodes", "remove", "extra", "--kubeconfig", str(kubeconfig)).exit_code == 0
    with nodes_run(kubeconfig, "--count", "3", "--remove") as said:
        assert "3 nodes" in said
    assert names(kubeconfig) == []


def test_one_node_and_none(kubeconfig: Path) -> None:
    with nodes_run(kubeconfig, "--count", "1", "--prefix", "only-", "--remove") as said:
        assert said.startswith("ready: node only-0 at ")
    with nodes_run(kubeconfig, "--count", "0") as said:
        assert said.startswith("ready: no nodes of its own at ")


def test_nobody_serves_nodes_without_it(kubeconfig: Path) -> None:
    result = call("nodes", "add", "orphan", "--no-wait", "--kubeconfig", str(kubeconfig))
    assert result.exit_code == 0
    assert names(kubeconfig) == []
    assert call("nodes", "remove", "orphan", "--kubeconfig", str(kubeconfig)).exit_code == 0


def test_input_that_cannot_be_used(tmp_path: Path) -> None:
    nowhere = tmp_path / "kubeconfig"
    write_kubeconfig(nowhere, "http://127.0.0.1:9")
    cases = {
        ("--kubeconfig", str(nowhere)): "no API server answers at http://127.0.0.1:9",
        ("--kubeconfig", str(tmp_path / "none")): "none",
        ("--kubeconfig", str(nowhere), "--prefix", "A_"): "A_0",
        ("--kubeconfig", str(nowhere), "--unpullable", "("): "--unpullable: '(' is not a regular expression",
        (): "--kubeconfig",
    }
    for arguments, told in cases.items():
        result = call("nodes", "run", *arguments)
        assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


def test_a_name_that_is_taken(kubeconfig: Path) -> None:
    """By a node that is not simulated, or does not say so."""
    (cluster,) = yaml.safe_load(kubeconfig.read_text())["clusters"]
    body = json.dumps({"metadata": {"name": "mine-0"}}).encode()
    make = urllib.request.Request(
        f"{cluster['cluster']['server']}/api/v1/nodes", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(make, timeout=WAIT_S) as answer:
        assert answer.status == 201
    result = call("nodes", "run", "--count", "1", "--prefix", "mine-", "--kubeconfig", str(kubeconfig))
    assert result.exit_code == 1
    assert problems(result) == [
        "oarlock: node 'mine-0' exists and is not simulated (no annotation oarlock.io/simulated)"
    ]
    assert call("nodes", "remove", "mine-0", "--kubeconfig", str(kubeconfig)).exit_code == 0
