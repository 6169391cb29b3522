"""A DELETE that is cut off between the server's two writes leaves a pod that only a collector of pods takes away."""

from __future__ import annotations

import json
import os
import random
import socket
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import ROOT
from tests.realserver.processes import Running
from tests.realserver.server import ADMIN, RealServer

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.environ.get("OARLOCK_TEST_SERVER") != "real", reason="make test-cluster has a real server"),
]

PODS = "/api/v1/namespaces/cut/pods"
TRIES = 1_500
SPEC = {
    "schedulerName": "nobody",
    "automountServiceAccountToken": False,
    "containers": [{"name": "c", "image": "nginx"}],
}


class Api:
    """Plain requests, and some that are cut off."""

    def __init__(self, server: RealServer) -> None:
        self._url, self._tls = server.url, ssl._create_unverified_context()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {ADMIN.token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self._url + path, method=method, data=data, headers=headers)
        with urllib.request.urlopen(request, context=self._tls) as answer:
            return json.load(answer)

    def cut_delete(self, name: str, after_s: float) -> None:
        """Send a DELETE and hang up."""
        address = urlsplit(self._url)
        with self._tls.wrap_socket(socket.create_connection((address.hostname, address.port))) as connection:
            head = f"DELETE {PODS}/{name} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
            connection.sendall(f"{head}Authorization: Bearer {ADMIN.token}\r\n\r\n".encode())
            time.sleep(after_s)

    def stuck(self) -> set[str]:
        """Pods that are being deleted, with no grace left and on no node."""
        return {
            pod["metadata"]["name"]
            for pod in self.ask("GET", PODS)["items"]
            if pod["metadata"].get("deletionGracePeriodSeconds") == 0 and not pod["spec"].get("nodeName")
        }


def test_what_is_stuck_is_finished_by_whoever_runs_the_nodes(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with RealServer(tmp_path / "server") as server:
        api = Api(server)
        api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "cut"}})
        api.ask("POST", "/api/v1/namespaces/cut/serviceaccounts", {"metadata": {"name": "default"}})
        for number in range(TRIES):
            api.ask("POST", PODS, {"metadata": {"name": f"p{number}"}, "spec": SPEC})
            api.cut_delete(f"p{number}", 10 ** chance.uniform(-3, -0.6))
            if number % 25 == 24 and api.stuck():
                break
        time.sleep(2.0)  # whatever was only slow is done
        stuck = api.stuck()
        if not stuck:
            pytest.skip(f"none of {TRIES} deletes was cut off between the two writes")
        time.sleep(5.0)
        assert api.stuck() == stuck, "the server does not finish them"
        command = [sys.executable, "-m", "oarlock.cli", "nodes", "run", "--count", "0"]
        nodes = Running([*command, "--kubeconfig", str(server.kubeconfig)], tmp_path / "nodes.log", cwd=ROOT)
        try:
            ends_s = time.monotonic() + 120
            while api.stuck():
                assert time.monotonic() < ends_s, (tmp_path / "nodes.log").read_text()
                time.sleep(0.5)
        finally:
            nodes.kill()
