"""`oarlock operator` and `oarlock dev` in processes of their own, and the objects that tests bring them."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from oarlock.cluster.access import config
from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client
from oarlock.cluster.listing import list_all
from oarlock.cluster.resources import Resource
from tests import ROOT
from tests.e2e.e2e_helpers import environment, stopped

SITES = Resource("example.com/v1", "websites", "Website", True)
DEPLOYMENTS = Resource("apps/v1", "deployments", "Deployment", True)
SERVICES = Resource("v1", "services", "Service", True)
LEASES = Resource("coordination.k8s.io/v1", "leases", "Lease", True)


def website_file(folder: Path, name: str = "website.py") -> Path:
    """A copy of the tests' own operator, to be edited."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(ROOT / "tests" / "sdk" / "website.py", folder / name))


def site(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Website",
        "metadata": {"name": name},
        "spec": {"image": "nginx:1", "replicas": 1, **spec},
    }


class Objects:
    """Of a cluster, by its kubeconfig; in the namespace default."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def create(self, resource: Resource, *objects: dict[str, Any]) -> None:
        async def create(client: Client) -> list[Answer]:
            return [await client.create(resource, "default", json.dumps(each).encode()) for each in objects]

        for answer in self._ask(create):
            assert answer.ok, answer.message

    def all(self, resource: Resource, namespace: str = "default") -> dict[str, dict[str, Any]]:
        """By name."""

        async def read(client: Client) -> list[bytes]:
            return (await list_all(client.list_pages(resource, namespace=namespace)))[1]

        return {each["metadata"]["name"]: each for each in map(json.loads, self._ask(read))}

    def _ask(self, what: Any) -> Any:
        async def ask() -> Any:
            async with Client(config.load(self._kubeconfig), role="test") as client:
                return await what(client)

        return asyncio.run(ask())


class Running:
    """A command of ours that runs until it is stopped."""

    def __init__(self, log: Path, *arguments: str, **more: str) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-m", "oarlock.cli", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=environment(OARLOCK_KUBE_API_QPS="0", **more),
            )

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def workers(self) -> list[int]:
        """Pids of all that were ever started."""
        return [int(pid) for pid in re.findall(r"event=started worker=\S+ pid=(\d+)", self.said)]

    def stop(self, number: int = signal.SIGTERM, limit_s: float = 30) -> int:
        """Its exit code. Fails the test if it takes longer."""
        return stopped(self.process, number, limit_s)
