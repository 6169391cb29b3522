"""A real server comes up, lets in whom it should, and ends with the process that started it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from oarlock.cluster.access.config import load
from oarlock.cluster.client import Client
from oarlock.cluster.outcome import Outcome, of_create
from oarlock.cluster.resources import PODS
from tests import ROOT
from tests.realserver.server import RealServer, User

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(os.environ.get("OARLOCK_TEST_SERVER") != "real", reason="make test-cluster has a real server"),
]

READER = User("reader", ("readers",))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with RealServer(tmp_path_factory.mktemp("server"), users=[READER], rbac=True) as made:
        yield made


def kubectl(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["kubectl", "--kubeconfig", str(kubeconfig), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_with_rbac_only_the_admin_may(server: RealServer) -> None:
    assert kubectl(server.kubeconfig, "create", "namespace", "mine").returncode == 0
    refused = kubectl(server.kubeconfig_of(READER), "get", "pods")
    assert "Forbidden" in refused.stderr
    assert 'User "reader"' in refused.stderr
    for made in (
        "clusterrole r --verb=get,list --resource=pods",
        "clusterrolebinding r --clusterrole=r --group=readers",
    ):
        assert kubectl(server.kubeconfig, "create", *made.split()).returncode == 0
    ends_s = time.monotonic() + 60
    while kubectl(server.kubeconfig_of(READER), "get", "pods").returncode:
        assert time.monotonic() < ends_s, "the rights arrive within seconds"
    assert kubectl(server.kubeconfig_of(READER), "create", "namespace", "other").returncode == 1


def test_a_name_that_is_taken_is_recognised(server: RealServer) -> None:
    """Older servers answer 500 where there is a generateName beside the name, as in all pods of ours."""
    spec = {"containers": [{"name": "c", "image": "nginx"}]}
    meta = {"name": "web-bbbbb", "generateName": "web-"}
    body = orjson.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    async def twice() -> list[Outcome]:
        async with Client(load(server.kubeconfig)) as client:
            return [of_create(await client.create(PODS, "default", body)) for _ in range(2)]

    assert asyncio.run(twice()) == [Outcome.DONE, Outcome.EXISTS]


def test_a_restart_keeps_what_is_stored(server: RealServer) -> None:
    assert kubectl(server.kubeconfig, "create", "configmap", "kept").returncode == 0
    url = server.url
    server.restart()
    assert server.url == url
    assert kubectl(server.kubeconfig, "get", "configmap", "kept").returncode == 0


def test_nothing_outlives_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import pathlib, time; from tests.realserver.server import RealServer;"
        f"s = RealServer(pathlib.Path({str(tmp_path)!r})).start(); s.run_controllers('namespace');"
        "print(*[each.process.pid for each in s._running], flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 3
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    ends_s = time.monotonic() + 60
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < ends_s, "one of them outlives its parent"
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
