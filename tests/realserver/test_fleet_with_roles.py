"""A fleet with exactly the shipped roles, as service accounts with projected tokens, does all that its kinds ask."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests import ROOT
from tests.realserver.accounts import apply, install, kubeconfig, kubectl, lines, may, role, token, without
from tests.realserver.processes import Running
from tests.realserver.server import RealServer

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.environ.get("OARLOCK_TEST_SERVER") != "real", reason="make test-cluster has a real server"),
]

OWN_REPLICAS = [("apps/v1", "ReplicaSet"), ("v1", "ReplicationController")]
INGESTOR, WORKER = (f"system:serviceaccount:oarlock:oarlock-{role}" for role in ("ingestor", "worker"))
Obj = dict[str, Any]


@dataclass(frozen=True)
class Fleet:
    server: RealServer
    folder: Path

    def missing(self, process: str) -> list[str]:
        """What one of its processes said of permissions."""
        return lines(self.folder / f"fleet-{process}.log")

    def nothing_is_missing(self) -> bool:
        return not self.missing("ingestor") and not self.missing("worker")

    def get(self, *arguments: str) -> Any:
        return json.loads(kubectl(self.server, "get", *arguments, "-o", "json"))

    def pods(self, namespace: str) -> list[Obj]:
        """Those that are not ending."""
        found = self.get("pods", "-n", namespace)["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def until(happened: Callable[[], Any], what: str, limit_s: float = 160.0) -> Any:
    ends_s = time.monotonic() + limit_s
    while not (answer := happened()):
        assert time.monotonic() < ends_s, f"not within {limit_s:g} s: {what}"
        time.sleep(0.2)
    return answer


def start(folder: Path, name: str, arguments: list[str]) -> Running:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OARLOCK_")}
    command = [sys.executable, "-m", "oarlock.cli", *arguments]
    log = folder / f"{name}.log"
    return Running(command, log, cwd=ROOT, env={**environment, "OARLOCK_KUBE_API_QPS": "0"})


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    flags = ["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]
    with ExitStack() as ending:
        server = ending.enter_context(RealServer(folder / "server", rbac=True, flags=flags))
        server.run_controllers("namespace", "garbagecollector")
        install(server)
        redis = ending.enter_context(EmbeddedRedis(folder / "redis"))

        def of(account: str) -> str:
            (folder / f"token-{account}").write_text(token(server, f"oarlock-{account}"))
            user = {"tokenFile": str(folder / f"token-{account}")}
            return str(kubeconfig(server, folder / f"kubeconfig-{account}", user))

        nodes = ["nodes", "run", "--count", "2", "--schedule", "--remove", "--terminate-ms", "100", "--kubeconfig"]
        ending.callback(start(folder, "nodes", [*nodes, str(server.kubeconfig)]).kill)
        ingest = ["ingest", "--embedded", "--redis", redis.url("ingestor"), "--kubeconfig", of("ingestor")]
        ending.callback(start(folder, "fleet-ingestor", ingest).kill)
        worker = ["worker", "--workers", "1", "--redis", redis.url("worker"), "--kubeconfig", of("worker")]
        ending.callback(start(folder, "fleet-worker", worker).end)
        yield Fleet(server, folder)


def template(image: str = "nginx:1") -> Obj:
    annotations = {"oarlock.io/sim-ready-after-ms": "50"}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": image}]}
    return {"metadata": {"labels": {"app": "a"}, "annotations": annotations}, "spec": spec}


def replicas(api_version: str, kind: str, namespace: str, count: int) -> Obj:
    selector = {"app": "a"} if kind == "ReplicationController" else {"matchLabels": {"app": "a"}}
    spec = {"replicas": count, "selector": selector, "template": template()}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "o", "namespace": namespace}, "spec": spec}


def daemonset(namespace: str, image: str, limit: int) -> Obj:
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template(image), "revisionHistoryLimit": limit}
    metadata = {"name": "o", "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


def deployment(namespace: str, image: str, limit: int) -> Obj:
    made = replicas("apps/v1", "Deployment", namespace, 2)
    return {**made, "spec": {**made["spec"], "template": template(image), "revisionHistoryLimit": limit}}


def named(name: str, made: Obj) -> Obj:
    return {**made, "metadata": {**made["metadata"], "name": name}}


def controlled(pods: list[Obj]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods if pod["metadata"].get("ownerReferences")}


@pytest.mark.parametrize(("api_version", "kind"), OWN_REPLICAS)
def test_create_scale_release_adopt(fleet: Fleet, api_version: str, kind: str) -> None:
    namespace, server = kind.lower(), fleet.server
    kubectl(server, "create", "namespace", namespace)

    def ready() -> int:
        return int(fleet.get(kind, "o", "-n", namespace)["status"].get("readyReplicas", 0))

    apply(
        server,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            **template(),
            "metadata": {**template()["metadata"], "name": "orphan", "namespace": namespace},
        },
    )
    kubectl(server, "wait", "pod/orphan", "-n", namespace, "--for=condition=Ready")
    orphan = fleet.get("pod", "orphan", "-n", namespace)["metadata"]["uid"]
    apply(server, replicas(api_version, kind, namespace, 2))
    until(lambda: ready() == 2 and orphan in controlled(fleet.pods(namespace)), "two are ready, one is adopted")
    apply(server, replicas(api_version, kind, namespace, 3))
    until(lambda: ready() == 3, "three are ready")
    freed = fleet.get("pod", "orphan", "-n", namespace)["metadata"]
    kubectl(server, "label", "pod", freed["name"], "-n", namespace, "app=b", "--overwrite")
    until(lambda: len(controlled(fleet.pods(namespace)) - {freed["uid"]}) == 3, "the one released is replaced")
    until(lambda: freed["uid"] not in controlled(fleet.pods(namespace)), "it is released")
    apply(server, replicas(api_version, kind, namespace, 1))
    until(lambda: len(controlled(fleet.pods(namespace))) == 1 and ready() == 1, "one is left")
    said = f"involvedObject.kind={kind}"

    def reasons() -> set[str]:
        return {each["reason"] for each in fleet.get("events", "-n", namespace, "--field-selector", said)["items"]}

    until(lambda: reasons() >= {"SuccessfulCreate", "SuccessfulDelete"}, "both events")
    assert fleet.nothing_is_missing()


def test_roll_back_and_prune(fleet: Fleet) -> None:
    namespace, server = "daemonset", fleet.server
    kubectl(server, "create", "namespace", namespace)

    def images() -> list[str]:
        status = fleet.get("daemonset", "o", "-n", namespace)["status"]
        settled = status.get("updatedNumberScheduled", 0) == 2 and status.get("numberReady", 0) == 2
        return sorted({pod["spec"]["containers"][0]["image"] for pod in fleet.pods(namespace)}) if settled else []

    def revisions() -> int:
        return len(fleet.get("controllerrevisions", "-n", namespace)["items"])

    apply(server, daemonset(namespace, "nginx:1", 3))
    until(lambda: images() == ["nginx:1"], "one on each node")
    apply(server, daemonset(namespace, "nginx:2", 3))
    until(lambda: images() == ["nginx:2"], "rolled")
    kubectl(server, "rollout", "undo", "daemonset/o", "-n", namespace)
    until(lambda: images() == ["nginx:1"], "rolled back")
    apply(server, daemonset(namespace, "nginx:3", 3))
    until(lambda: images() == ["nginx:3"] and revisions() == 3, "three revisions")
    apply(server, daemonset(namespace, "nginx:3", 0))
    until(lambda: revisions() == 1, "pruned")
    kubectl(server, "delete", "daemonset", "o", "-n", namespace, "--cascade=orphan")
    until(lambda: not controlled(fleet.pods(namespace)), "orphaned")
    before = {pod["metadata"]["uid"] for pod in fleet.pods(namespace)}
    apply(server, daemonset(namespace, "nginx:3", 0))
    until(lambda: controlled(fleet.pods(namespace)) == before, "adopted again, with their revision")
    assert fleet.nothing_is_missing()


def test_roll_out_roll_back_and_clean_up(fleet: Fleet) -> None:
    namespace, server = "deployment", fleet.server
    kubectl(server, "create", "namespace", namespace)

    def rolled_to(image: str) -> bool:
        status = fleet.get("deployment", "o", "-n", namespace).get("status", {})
        settled = status.get("updatedReplicas") == status.get("availableReplicas") == status.get("replicas") == 2
        return settled and {pod["spec"]["containers"][0]["image"] for pod in fleet.pods(namespace)} == {image}

    def replicasets() -> set[str]:
        return {each["metadata"]["uid"] for each in fleet.get("rs", "-n", namespace)["items"]}

    apply(server, deployment(namespace, "nginx:1", 3))
    until(lambda: rolled_to("nginx:1"), "two pods")
    apply(server, deployment(namespace, "nginx:2", 3))
    until(lambda: rolled_to("nginx:2"), "rolled out")
    kubectl(server, "rollout", "undo", "deployment/o", "-n", namespace)
    until(lambda: rolled_to("nginx:1"), "rolled back by kubectl")
    kubectl(server, "annotate", "deployment/o", "-n", namespace, "deprecated.deployment.rollback.to=0")
    until(lambda: rolled_to("nginx:2"), "rolled back by the fleet")
    assert len(replicasets()) == 2
    kubectl(server, "patch", "deployment/o", "-n", namespace, "-p", '{"spec":{"revisionHistoryLimit":0}}')
    until(lambda: len(replicasets()) == 1, "cleaned up")
    before = replicasets()
    kubectl(server, "delete", "deployment", "o", "-n", namespace, "--cascade=orphan")
    until(lambda: not controlled(fleet.get("rs", "-n", namespace)["items"]), "orphaned")
    apply(server, deployment(namespace, "nginx:2", 0))
    until(lambda: controlled(fleet.get("rs", "-n", namespace)["items"]) == before, "adopted again")
    assert fleet.nothing_is_missing()


def test_without_a_verb_the_rest_goes_on(fleet: Fleet) -> None:
    """The role of ReplicaSets loses its statuses; nothing else is missing."""
    server, namespace = fleet.server, "missing"
    file, whole = "worker-replicaset.yaml", role("worker-replicaset.yaml")
    kubectl(server, "create", "namespace", namespace)
    apply(server, without(whole, "patch", "apps", "replicasets/status"))
    until(lambda: not may(server, WORKER, "patch", "replicasets.apps", "status"), "the right is gone")
    apply(server, replicas("apps/v1", "ReplicaSet", namespace, 2))
    (line,) = until(lambda: fleet.missing("worker"), "it is said")
    assert "verb=patch resource=replicasets/status api_group=apps" in line
    assert f"user={WORKER}" in line
    assert line.endswith(f"granted_by=helm/oarlock/rbac/{file}")
    apply(server, named("rc", replicas("v1", "ReplicationController", namespace, 3)))
    until(lambda: fleet.get("rc", "rc", "-n", namespace)["status"].get("replicas") == 3, "another kind goes on")
    assert fleet.get("rs", "o", "-n", namespace)["status"].get("replicas", 0) == 0
    assert fleet.missing("worker") == [line], "said once"
    apply(server, whole)
    until(lambda: fleet.get("rs", "o", "-n", namespace)["status"].get("readyReplicas") == 2, "granted, it heals")


def test_without_a_watch_the_ingestor_says_so_and_recovers(fleet: Fleet) -> None:
    server, whole = fleet.server, role("ingestor.yaml")
    apply(server, without(without(whole, "watch", "apps", "daemonsets"), "list", "apps", "daemonsets"))
    until(lambda: not may(server, INGESTOR, "watch", "daemonsets.apps"), "the right is gone")
    server.restart()  # watches that are open go on without the right: these end
    until(lambda: fleet.missing("ingestor"), "it is said")
    namespace = "watched"
    kubectl(server, "create", "namespace", namespace)
    apply(server, named("d", daemonset(namespace, "nginx:1", 1)), replicas("apps/v1", "ReplicaSet", namespace, 2))
    until(lambda: len(fleet.pods(namespace)) == 2, "other kinds go on")
    apply(server, whole)
    until(lambda: fleet.get("ds", "d", "-n", namespace)["status"].get("numberReady") == 2, "granted, it heals")
    told = fleet.missing("ingestor")
    assert all(re.search("verb=(list|watch) resource=daemonsets api_group=apps ", line) for line in told)
    assert len(told) <= 2, "each is said once"
    assert all(line.endswith("granted_by=helm/oarlock/rbac/ingestor.yaml") for line in told)
