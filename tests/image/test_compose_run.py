"""The services of compose.yaml, run as it says, without an engine: they do the job."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.image.composing import prepare, services
from tests.image.containers import Container, Network
from tests.image.image_parts import Image

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
SHORT = {"OARLOCK_LEASE_MS": "2500", "OARLOCK_RENEW_EVERY_MS": "500", "OARLOCK_REQUEST_TIMEOUT_MS": "1000"}
"""Of the fleet's times, so that the first epoch opens soon."""


class Fleet:
    """The services of a compose file as containers; ``redis-server`` is this machine's."""

    def __init__(self, image: Image, project: Path, network: Network) -> None:
        self._image, self._network = image, network
        self._state = project / "state"
        self._state.mkdir()
        shutil.chown(self._state, 65532, 65532)
        _open_the_way(project)
        self.running: dict[str, Container] = {}
        self._environment: dict[str, dict[str, str]] = {}

    def start(self, name: str, service: dict[str, Any], more: dict[str, str] | None = None) -> None:
        """One container of a service, under its name; ``more``: of its environment."""
        ours = "redis" not in name.partition("-")[0]
        final = self._image.final
        environment = {**(final.environment if ours else {"PATH": "/usr/bin:/bin"})}
        environment |= {**service.get("environment", {}), **(more or {})}
        entrypoint = service.get("entrypoint", final.entrypoint) if ours else []
        mounts = [self._mount(text) for text in service["volumes"]] + [f"tmpfs:{to}" for to in service["tmpfs"]]
        self._environment[name] = environment
        self.running[name] = Container(
            [*entrypoint, *service["command"]],
            environment=environment,
            mounts=[*mounts, *(self._image.mounts if ours else [])],
            network=self._network,
            names=[name],
        )

    def healthy(self, name: str, service: dict[str, Any]) -> bool:
        """What the service's own health check says."""
        word, *command = service["healthcheck"]["test"]
        assert word == "CMD"
        return self.running[name].run(*command, environment=self._environment[name]).returncode == 0

    def wait(self, what: str, holds: Callable[[], bool], limit_s: float = 60.0) -> None:
        """Raises AssertionError with what all of them said."""
        end_s = time.monotonic() + limit_s
        while not holds():
            if time.monotonic() > end_s or any(each.process.poll() is not None for each in self.running.values()):
                said = "\n".join(f"--- {name}\n{each.said()[-3000:]}" for name, each in self.running.items())
                pytest.fail(f"{what}: not so after {limit_s:.0f} s, or something ended\n{said}")
            time.sleep(0.2)

    def _mount(self, text: str) -> str:
        source, to, *mode = text.split(":")
        return f"{self._state if source == 'state' else source}:{to}:{mode[0] if mode else 'rw'}"


@pytest.fixture
def fleet(image: Image, project: Path, network: Network) -> Iterator[Fleet]:
    if shutil.which("redis-server") is None:
        assert not os.environ.get("CI"), "redis-server is missing"
        pytest.skip("needs a redis-server of this machine")
    made = Fleet(image, project, network)
    yield made
    for container in made.running.values():
        container.kill()


def test_its_services_do_the_job(fleet: Fleet, project: Path, network: Network) -> None:
    """With TLS, the richer one: a ReplicaSet is applied, its pods run, a worker is scaled, all leave when asked to."""
    assert prepare(project, "--tls").returncode == 0
    found = services(project, "tls", "try")
    fleet.start("redis-tls", found["redis-tls"])
    fleet.start("cluster", found["cluster"])
    for name in ("redis-tls", "cluster"):
        fleet.wait(f"{name} is healthy", lambda name=name: fleet.healthy(name, found[name]))  # type: ignore[misc]
    fleet.start("ingestor-1", found["ingestor"], SHORT)
    fleet.start("ingestor-2", found["ingestor"], SHORT)
    fleet.start("worker-1", found["worker"], SHORT)
    fleet.start("worker-2", found["worker"], SHORT)
    for name in ("ingestor-1", "ingestor-2", "worker-1", "worker-2"):
        kind = found[name.partition("-")[0]]
        fleet.wait(f"{name} is healthy", lambda name=name, kind=kind: fleet.healthy(name, kind))  # type: ignore[misc]
    api = "http://" + next(
        line.split()[0] for line in network.hosts.read_text().splitlines() if line.endswith(" cluster")
    )
    path = f"{api}:6443/apis/apps/v1/namespaces/default/replicasets"
    ask = ("curl", "-sf", "-H", "Host: cluster:6443")  # it answers to its name
    body = json.dumps(REPLICASET)
    network.run(*ask, "-H", "Content-Type: application/json", "-d", body, path)
    fleet.wait("5 pods are ready", lambda: _ready(network, *ask, f"{path}/web") == 5)
    for name in ("worker-1", "worker-2", "ingestor-1", "ingestor-2"):
        container = fleet.running.pop(name)
        assert container.stop() == 0, container.said()


def _ready(network: Network, *ask: str) -> int:
    status = json.loads(network.run(*ask)).get("status", {})
    return int(status.get("readyReplicas", 0))


def _open_the_way(folder: Path) -> None:
    """The temporary folders of a test are its user's alone; those of a container are another's."""
    for parent in (folder, *folder.parents):
        if parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(parent.stat().st_mode | 0o055)


REPLICASET: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 5,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        },
    },
}
