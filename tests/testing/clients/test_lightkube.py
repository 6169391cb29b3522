"""What lightkube's documentation shows, call by call, on the cluster of a test."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from oarlock.testing import Cluster, gone
from tests.testing.manifests import workload

lightkube = pytest.importorskip("lightkube", reason="pip install oarlock[clients]")

from lightkube import ApiError  # noqa: E402 - only where it is installed
from lightkube.core.exceptions import ConditionError  # noqa: E402
from lightkube.models.autoscaling_v1 import ScaleSpec  # noqa: E402
from lightkube.models.meta_v1 import ObjectMeta  # noqa: E402
from lightkube.resources.apps_v1 import Deployment, ReplicaSet  # noqa: E402
from lightkube.resources.core_v1 import ConfigMap, Event, Namespace, Node, Pod  # noqa: E402
from lightkube.types import CascadeType, PatchType  # noqa: E402


def config_map(name: str, **labels: str) -> Any:
    return ConfigMap(metadata=ObjectMeta(name=name, labels=labels), data={"a": "1"})


@pytest.fixture
def client(cluster: Cluster) -> Any:
    return cluster.lightkube


def web(replicas: int = 1) -> Any:
    return Deployment.from_dict(workload(replicas=replicas))


def test_create_get_replace(client: Any) -> None:
    client.create(config_map("one"))
    found = client.get(ConfigMap, "one")
    found.data["a"] = "2"
    replaced = client.replace(found)
    assert replaced.data == {"a": "2"}
    assert int(replaced.metadata.resourceVersion) > int(found.metadata.resourceVersion)


def test_errors(client: Any) -> None:
    client.create(config_map("one"))
    stale = client.get(ConfigMap, "one")
    client.patch(ConfigMap, "one", {"data": {"a": "2"}})
    for code, call in (
        (404, lambda: client.get(ConfigMap, "two")),
        (409, lambda: client.replace(stale)),
        (409, lambda: client.create(config_map("one"))),
        (422, lambda: client.create(web(-1))),
    ):
        with pytest.raises(ApiError) as refused:
            call()
        assert refused.value.status.code == code


def test_server_side_apply(client: Any) -> None:
    def applied(**data: str) -> ConfigMap:
        return ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="one"), data=data)

    client.apply(applied(a="1", b="1"), field_manager="one")
    with pytest.raises(ApiError, match='conflict with "one"') as refused:
        client.apply(applied(a="2"), field_manager="two")
    assert refused.value.status.code == 409
    client.apply(applied(a="2"), field_manager="two", force=True)
    assert client.apply(applied(b="1"), field_manager="one").data == {"a": "2", "b": "1"}


@pytest.mark.parametrize(
    ("patch_type", "patch"),
    [
        (PatchType.STRATEGIC, {"spec": {"replicas": 2}}),
        (PatchType.MERGE, {"spec": {"replicas": 2}}),
        (PatchType.JSON, [{"op": "replace", "path": "/spec/replicas", "value": 2}]),
    ],
)
def test_patches(cluster: Cluster, client: Any, patch_type: Any, patch: Any) -> None:
    client.create(web())
    client.patch(Deployment, "web", patch, patch_type=patch_type)
    cluster.wait("pods", count=2)


def test_lists(cluster: Cluster, client: Any) -> None:
    client.create(web(2))
    cluster.wait("deployment/web")
    names = {each.metadata.name for each in client.list(Pod, labels={"app": ["web", "db"]})}
    assert len(names) == 2
    name = min(names)
    assert [each.metadata.name for each in client.list(Pod, fields={"metadata.name": name})] == [name]
    assert list(client.list(Pod, labels={"app": "db"})) == []
    assert names <= {each.metadata.name for each in client.list(Pod, namespace="*")}


def test_a_list_in_chunks(client: Any) -> None:
    for number in range(5):
        client.create(config_map(f"map-{number}"))
    assert len(list(client.list(ConfigMap, chunk_size=2))) == 5


def test_watch(client: Any) -> None:
    listed = client.list(ConfigMap)
    assert list(listed) == []
    before = listed.resourceVersion
    client.create(config_map("one"))
    client.patch(ConfigMap, "one", {"data": {"a": "2"}})
    client.delete(ConfigMap, "one")
    seen = []
    for kind, found in client.watch(ConfigMap, resource_version=before, server_timeout=2):
        seen.append((kind, found.metadata.name))
        if kind == "DELETED":
            break
    assert seen == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]


def test_wait(client: Any) -> None:
    client.create(web())
    found = client.wait(Deployment, "web", for_conditions=["Available"])
    assert found.status.readyReplicas == 1
    client.create(Pod.from_dict({"metadata": {"name": "one"}, "spec": {"containers": [{"name": "c", "image": "c"}]}}))
    assert client.wait(Pod, "one", for_conditions=["Ready"]).status.phase == "Running"


def test_wait_raises_for_a_condition(client: Any) -> None:
    client.create(web())
    with pytest.raises(ConditionError):
        client.wait(Deployment, "web", for_conditions=["Never"], raise_for_conditions=["Available"])


def test_scale_and_status(cluster: Cluster, client: Any) -> None:
    client.create(web())
    while True:
        scale = client.get(Deployment.Scale, "web")
        scale.spec = ScaleSpec(replicas=2)
        try:
            client.replace(scale, "web")
            break
        except ApiError as error:
            if error.status.code != 409:  # the controller wrote the status meanwhile: read it and try again
                raise
    cluster.wait("deployment/web")
    cluster.wait("pods", count=2)
    assert client.get(Deployment.Status, "web").status.readyReplicas == 2


@pytest.mark.parametrize(
    ("cascade", "left"), [(CascadeType.FOREGROUND, 0), (CascadeType.BACKGROUND, 0), (CascadeType.ORPHAN, 1)]
)
def test_delete(cluster: Cluster, client: Any, cascade: Any, left: int) -> None:
    client.create(web())
    cluster.wait("deployment/web")
    client.delete(Deployment, "web", cascade=cascade)
    cluster.wait("deployment/web", gone)
    if not left:
        cluster.wait("replicasets", gone)
    assert len(list(client.list(ReplicaSet))) == left


def test_deletecollection(client: Any) -> None:
    client.create(config_map("one"))
    client.deletecollection(ConfigMap)
    assert list(client.list(ConfigMap)) == []


def test_namespaces_nodes_and_events(cluster: Cluster, client: Any) -> None:
    assert client.get(Namespace, cluster.namespace).status.phase == "Active"
    assert len(list(client.list(Node))) == 3
    client.create(web())
    cluster.wait("deployment/web")
    cluster.wait("events", lambda events: any(each["reason"] == "ScalingReplicaSet" for each in events))
    assert list(client.list(Event, fields={"reason": "ScalingReplicaSet"}))


def test_a_dry_run_stores_nothing(client: Any) -> None:
    client.create(config_map("one"), dry_run=True)
    assert list(client.list(ConfigMap)) == []


def test_the_asynchronous_client(cluster: Cluster) -> None:
    async def names() -> list[str]:
        config = lightkube.KubeConfig.from_file(str(cluster.kubeconfig))
        client = lightkube.AsyncClient(config=config, namespace=cluster.namespace)
        await client.create(config_map("one"))
        found = [each.metadata.name async for each in client.list(ConfigMap)]
        await client.close()
        return found

    assert asyncio.run(names()) == ["one"]


def test_labels_are_set_and_removed(client: Any) -> None:
    client.create(config_map("one", tier="a"))
    client.patch(ConfigMap, "one", {"metadata": {"labels": {"tier": None, "new": "b"}}}, patch_type=PatchType.MERGE)
    assert client.get(ConfigMap, "one").metadata.labels == {"new": "b"}
