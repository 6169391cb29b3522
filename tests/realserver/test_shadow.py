"""A fleet that runs dry beside upstream's manager, with the shipped accounts: what it asks of the server, by the
server's own audit log, and what it reports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests import ROOT
from tests.realserver.accounts import ROLES, apply, kubeconfig, kubectl, lines, token
from tests.realserver.server import RealServer
from tests.realserver.test_fleet_with_roles import daemonset, deployment, named, replicas, start, until
from tests.whole_lines import whole_lines

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.environ.get("OARLOCK_TEST_SERVER") != "real", reason="make test-cluster has a real server"),
]

NAMESPACE = "oarlock-shadow"
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
DRY = ("--dry-run", "--fleet-id", "shadow")
Obj = dict[str, Any]


class Shadow(NamedTuple):
    server: RealServer
    redis: EmbeddedRedis
    folder: Path

    def report(self, *flags: str) -> tuple[int, Obj]:
        command = [sys.executable, "-m", "oarlock.cli", "shadow", "report", *flags, "-o", "json"]
        command += ["--redis", self.redis.url("metrics")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def asked(self) -> list[Obj]:
        """What the shadow's accounts asked of the server, by its audit log."""
        events = map(json.loads, whole_lines(self.folder / "audit.log"))
        return [each for each in events if each["user"]["username"].startswith(f"system:serviceaccount:{NAMESPACE}:")]


@pytest.fixture(scope="module")
def shadow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shadow]:
    folder = tmp_path_factory.mktemp("shadow")
    (folder / "policy.yaml").write_text(POLICY)
    flags = [f"--audit-policy-file={folder / 'policy.yaml'}", f"--audit-log-path={folder / 'audit.log'}"]
    with ExitStack() as ending:
        server = ending.enter_context(RealServer(folder / "server", rbac=True, flags=flags))
        owners = ("deployment", "replicaset", "replicationcontroller", "daemonset")
        server.run_controllers("namespace", "garbagecollector", *owners)
        kubectl(server, "create", "namespace", NAMESPACE)
        kubectl(server, "apply", "-f", str(ROLES / "shadow"))
        redis = ending.enter_context(EmbeddedRedis(folder / "redis"))

        def of(role: str) -> str:
            (folder / f"token-{role}").write_text(token(server, f"{NAMESPACE}-{role}", namespace=NAMESPACE))
            return str(kubeconfig(server, folder / f"kubeconfig-{role}", {"tokenFile": str(folder / f"token-{role}")}))

        nodes = ["nodes", "run", "--count", "3", "--schedule", "--remove", "--terminate-ms", "100", "--kubeconfig"]
        ending.callback(start(folder, "nodes", [*nodes, str(server.kubeconfig)]).kill)
        ingest = ["ingest", *DRY, "--embedded", "--redis", redis.url("ingestor"), "--kubeconfig", of("ingestor")]
        ending.callback(start(folder, "ingestor", ingest).kill)
        worker = ["worker", *DRY, "--workers", "2", "--redis", redis.url("worker"), "--kubeconfig", of("worker")]
        ending.callback(start(folder, "worker", worker).end)
        until(lambda: '"event": "open"' in (folder / "ingestor.log").read_text(), "an epoch of the dry run")
        yield Shadow(server, redis, folder)


def test_it_reads_and_writes_its_lease_and_finds_nothing(shadow: Shadow) -> None:
    server, namespace = shadow.server, "load"
    kubectl(server, "create", "namespace", namespace)
    made = (
        named("d", deployment(namespace, "nginx:1", 2)),
        replicas("apps/v1", "ReplicaSet", namespace, 3),
        replicas("v1", "ReplicationController", namespace, 2),
        daemonset(namespace, "agent:1", 2),
    )
    apply(server, *made)
    until(lambda: windows(shadow) >= 4 and is_quiet(shadow), "the shadow at rest beside what was created")
    for image, count in (("nginx:2", 4), ("nginx:3", 1)):
        before = windows(shadow)
        apply(server, named("d", deployment(namespace, image, 2)), daemonset(namespace, image, 2))
        kubectl(server, "scale", "rs/o", "rc/o", f"--replicas={count}", "-n", namespace)
        until(lambda before=before: windows(shadow) >= before + 4 and is_quiet(shadow), f"the shadow with {image}")
    code, told = shadow.report()
    assert (code, told["unexplained"], told["differences"]) == (0, 0, []), told
    assert {each["controller"] for each in told["controllers"]} >= {"deployment", "replicaset", "daemonset"}

    asked = [
        {"objectRef": {"resource": each["requestURI"]}, **each} for each in shadow.asked()
    ]  # /version is no object
    assert "list" in {each["verb"] for each in asked if each["objectRef"]["resource"] == "pods"}
    writes = [each for each in asked if each["verb"] not in ("get", "list", "watch")]
    assert writes
    assert {each["objectRef"]["resource"] for each in writes} == {"leases"}
    assert {each["objectRef"].get("name", "oarlock-shadow.dry-run") for each in writes} == {"oarlock-shadow.dry-run"}
    assert not lines(shadow.folder / "ingestor.log")
    assert not lines(shadow.folder / "worker.log")


def windows(shadow: Shadow) -> int:
    return sum(each["windows"] for each in shadow.report()[1]["controllers"])


def is_quiet(shadow: Shadow) -> bool:
    """Whether no window is open, twice in a row: upstream may be about to go on."""
    return all(_is_closed(shadow) for _ in range(2))


def _is_closed(shadow: Shadow) -> bool:
    owners = shadow.report("--all")[1]["owners"]
    return bool(owners) and all(each["pending_ms"] is None for each in owners)
