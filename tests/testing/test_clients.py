"""Ready-made clients: what each library's documentation does first. They come with ``pip install oarlock[clients]``."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from oarlock.testing import Cluster, gone
from oarlock.testing.clients import NotInstalled
from tests.testing.manifests import workload


def test_the_official_client(cluster: Cluster) -> None:
    client = pytest.importorskip("kubernetes.client")
    apps, core = client.AppsV1Api(cluster.kubernetes), client.CoreV1Api(cluster.kubernetes)
    apps.create_namespaced_deployment(cluster.namespace, workload(replicas=2))
    cluster.wait("deployment/web")
    pods = core.list_namespaced_pod(cluster.namespace, label_selector="app=web").items
    assert [each.status.phase for each in pods] == ["Running"] * 2
    apps.patch_namespaced_deployment_scale("web", cluster.namespace, {"spec": {"replicas": 1}})
    cluster.wait("pods", count=1)
    with cluster.fault(409, verb="update", resource="deployments", by="tests", times=1) as fault:
        found = apps.read_namespaced_deployment("web", cluster.namespace)
        with pytest.raises(client.ApiException) as refused:
            apps.replace_namespaced_deployment("web", cluster.namespace, found)
        assert (refused.value.status, fault.applied) == (409, 1)
    apps.delete_namespaced_deployment("web", cluster.namespace)
    cluster.wait("pods", gone)


def test_kr8s(cluster: Cluster) -> None:
    objects = pytest.importorskip("kr8s.objects")
    deployment = objects.Deployment(workload(replicas=2), api=cluster.kr8s)
    deployment.create()
    cluster.wait("deployment/web")
    pods = list(cluster.kr8s.get("pods", label_selector="app=web"))
    assert [each.status.phase for each in pods] == ["Running"] * 2
    assert {each.namespace for each in pods} == {cluster.namespace}
    deployment.scale(1)
    cluster.wait("pods", count=1)
    deployment.delete()
    cluster.wait("pods", gone)


def test_lightkube(cluster: Cluster) -> None:
    pytest.importorskip("lightkube")
    from lightkube.resources.apps_v1 import Deployment
    from lightkube.resources.core_v1 import Pod

    client = cluster.lightkube
    client.create(Deployment.from_dict(workload(replicas=2)))
    cluster.wait("deployment/web")
    pods = list(client.list(Pod, labels={"app": "web"}))
    assert [each.status.phase for each in pods] == ["Running"] * 2
    client.patch(Deployment, "web", {"spec": {"replicas": 1}})
    cluster.wait("pods", count=1)
    client.delete(Deployment, "web")
    cluster.wait("pods", gone)


@pytest.mark.parametrize("name", ["kubernetes", "kr8s", "lightkube"])
def test_an_absent_client_is_named(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for module in [each for each in sys.modules if each.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)

    class Absent:
        def find_spec(self, wanted: str, *_: Any) -> None:
            if wanted.split(".", maxsplit=1)[0] == name:
                raise ModuleNotFoundError(f"No module named {wanted!r}", name=wanted)

    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(NotInstalled, match=f"cluster.{name} needs the package {name}: pip install {name}"):
        getattr(cluster, name)
