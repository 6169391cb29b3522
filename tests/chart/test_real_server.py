"""A real API server takes all that the chart gives; Helm installs, changes and removes it there (`make test-cluster`).

Left out on this server: custom resources (ScaledObject, ServiceMonitor, PrometheusRule), whose kinds it does not serve.
Budgets and HPAs are rendered for its version, 1.20: policy/v1beta1 and autoscaling/v2beta2.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.chart.custom_kinds import SCHEMAS
from tests.chart.engine import CHART, CI_VALUES, NEEDED, Obj, ci_values, helm_python, merged, render
from tests.realserver.accounts import kubectl
from tests.realserver.server import RealServer

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.timeout(180),
    pytest.mark.skipif(os.environ.get("OARLOCK_TEST_SERVER") != "real", reason="make test-cluster has a real server"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with RealServer(tmp_path_factory.mktemp("server"), rbac=True) as running:
        for namespace in ("oarlock", "monitoring"):
            kubectl(running, "create", "namespace", namespace)
        yield running


def version_of(server: RealServer) -> str:
    return str(json.loads(kubectl(server, "version", "-o", "json"))["serverVersion"]["gitVersion"])


def test_every_object_is_taken(server: RealServer) -> None:
    version = version_of(server)
    distinct: dict[str, Obj] = {}
    for path in CI_VALUES:
        for each in render(ci_values(path), kube_version=version).objects:
            if (each["apiVersion"], each["kind"]) not in SCHEMAS:
                distinct.setdefault(json.dumps(each, sort_keys=True), each)
    said = kubectl(
        server, "apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all([*distinct.values()])
    ).splitlines()
    assert len(said) == len(distinct) > 80
    assert all(line.endswith("(server dry run)") for line in said), said


def installed(server: RealServer) -> set[tuple[str, str]]:
    kinds = "statefulset,service,configmap,serviceaccount,poddisruptionbudget,networkpolicy"
    kinds += ",horizontalpodautoscaler,role,rolebinding"
    selector = ("-l", "app.kubernetes.io/instance=oarlock", "-o", "json")
    everywhere = json.loads(kubectl(server, "get", kinds, "-A", *selector))["items"]
    everywhere += json.loads(kubectl(server, "get", "clusterrole,clusterrolebinding", *selector))["items"]
    return {(each["kind"], each["metadata"]["name"]) for each in everywhere}


def identities(objects: list[Obj]) -> set[tuple[str, str]]:
    return {(each["kind"], each["metadata"]["name"]) for each in objects}


def test_helm_installs_changes_and_removes(server: RealServer) -> None:
    """With the capabilities of the server itself, not with those the other tests tell Helm."""
    version = version_of(server)
    more: dict[str, Any] = merged(
        NEEDED, {"controllers": {"daemonset": False}, "worker": {"autoscaling": {"mode": "hpa"}}}
    )
    with helm_python.Config(kubeconfig_path=server.kubeconfig, namespace="oarlock") as helm:
        helm.install(CHART, "oarlock", dict(NEEDED), namespace="oarlock")
        assert installed(server) == identities(render(kube_version=version).objects)
        helm.upgrade(CHART, "oarlock", more, namespace="oarlock", reset_values=True)
        assert installed(server) == identities(render(more, kube_version=version).objects)
        assert ("ClusterRole", "oarlock-worker-daemonset") not in installed(server)
        helm.uninstall("oarlock")
    assert installed(server) == set()


def test_helm_makes_nothing_where_a_secret_is_missing(server: RealServer) -> None:
    with (
        helm_python.Config(kubeconfig_path=server.kubeconfig, namespace="oarlock") as helm,
        pytest.raises(helm_python.HelmError, match="there are no default passwords"),
    ):
        helm.install(CHART, "oarlock", {}, namespace="oarlock")
    assert installed(server) == set()
