"""What the official client's documentation shows, call by call, on the cluster of a test."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from oarlock.testing import Cluster, gone
from tests.testing.manifests import workload

client = pytest.importorskip("kubernetes.client", reason="pip install oarlock[clients]")


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "data": {"a": "1", "b": "2"}}


@pytest.fixture
def core(cluster: Cluster) -> Any:
    return client.CoreV1Api(cluster.kubernetes)


@pytest.fixture
def apps(cluster: Cluster) -> Any:
    return client.AppsV1Api(cluster.kubernetes)


def test_version_and_discovery(cluster: Cluster, core: Any) -> None:
    assert client.VersionApi(cluster.kubernetes).get_code().major == "1"
    assert "apps" in [group.name for group in client.ApisApi(cluster.kubernetes).get_api_versions().groups]
    assert client.CoreApi(cluster.kubernetes).get_api_versions().versions == ["v1"]
    assert "pods" in [resource.name for resource in core.get_api_resources().resources]


def test_create_read_replace(cluster: Cluster, core: Any) -> None:
    core.create_namespaced_config_map(cluster.namespace, config_map("one"))
    found = core.read_namespaced_config_map("one", cluster.namespace)
    found.data = {"a": "5"}
    replaced = core.replace_namespaced_config_map("one", cluster.namespace, found)
    assert replaced.data == {"a": "5"}
    assert int(replaced.metadata.resource_version) > int(found.metadata.resource_version)


def test_typed_errors(cluster: Cluster, core: Any, apps: Any) -> None:
    core.create_namespaced_config_map(cluster.namespace, config_map("one"))
    stale = core.read_namespaced_config_map("one", cluster.namespace)
    core.patch_namespaced_config_map("one", cluster.namespace, {"data": {"a": "2"}})
    nothing_chosen = workload() | {"spec": {"template": workload()["spec"]["template"], "selector": {}}}
    for code, reason, call in (
        (404, "NotFound", lambda: core.read_namespaced_config_map("two", cluster.namespace)),
        (409, "AlreadyExists", lambda: core.create_namespaced_config_map(cluster.namespace, config_map("one"))),
        (409, "Conflict", lambda: core.replace_namespaced_config_map("one", cluster.namespace, stale)),
        (422, "Invalid", lambda: apps.create_namespaced_deployment(cluster.namespace, nothing_chosen)),
        (404, "NotFound", lambda: core.create_namespaced_config_map("absent", config_map("one"))),
    ):
        with pytest.raises(client.ApiException) as refused:
            call()
        assert refused.value.status == code
        assert f'"reason":"{reason}"' in refused.value.body


@pytest.mark.parametrize(
    ("content_type", "patch", "images"),
    [
        ("application/json-patch+json", [{"op": "add", "path": "/spec/paused", "value": True}], ["c"]),
        ("application/merge-patch+json", {"spec": {"paused": True}}, ["c"]),
        (
            "application/strategic-merge-patch+json",
            {"spec": {"paused": True, "template": {"spec": {"containers": [{"name": "two", "image": "two"}]}}}},
            ["c", "two"],
        ),
    ],
)
def test_patches(cluster: Cluster, apps: Any, content_type: str, patch: Any, images: list[str]) -> None:
    apps.create_namespaced_deployment(cluster.namespace, workload())
    apps.patch_namespaced_deployment("web", cluster.namespace, patch, _content_type=content_type)
    found = apps.read_namespaced_deployment("web", cluster.namespace).spec
    assert found.paused
    assert sorted(each.name for each in found.template.spec.containers) == images


def test_lists_with_selectors(cluster: Cluster, core: Any, apps: Any) -> None:
    apps.create_namespaced_deployment(cluster.namespace, workload(replicas=2))
    cluster.wait("deployment/web")
    pods = core.list_namespaced_pod(cluster.namespace, label_selector="app in (web, db)").items
    assert len(pods) == 2
    name = pods[0].metadata.name
    named = core.list_namespaced_pod(cluster.namespace, field_selector=f"metadata.name={name}").items
    assert [each.metadata.name for each in named] == [name]
    assert core.list_namespaced_pod(cluster.namespace, field_selector="status.phase!=Running").items == []
    assert name in [each.metadata.name for each in core.list_pod_for_all_namespaces().items]


def test_pages(cluster: Cluster, core: Any) -> None:
    for number in range(5):
        core.create_namespaced_config_map(cluster.namespace, config_map(f"map-{number}"))
    sizes, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(cluster.namespace, limit=2, _continue=token)
        sizes.append(len(page.items))
        token = page.metadata._continue or ""
    assert sizes == [2, 2, 1]


def test_watch(cluster: Cluster, core: Any) -> None:
    from kubernetes.watch import Watch

    before = core.list_namespaced_config_map(cluster.namespace).metadata.resource_version
    core.create_namespaced_config_map(cluster.namespace, config_map("one"))
    core.patch_namespaced_config_map("one", cluster.namespace, {"data": {"a": "2"}})
    core.delete_namespaced_config_map("one", cluster.namespace)
    options = {"resource_version": before, "timeout_seconds": 1}
    events = list(Watch().stream(core.list_namespaced_config_map, cluster.namespace, **options))
    assert [each["type"] for each in events] == ["ADDED", "MODIFIED", "DELETED"]


def test_a_watch_from_the_cut_history_is_410(cluster: Cluster, core: Any) -> None:
    from kubernetes.watch import Watch

    before = core.list_namespaced_config_map(cluster.namespace).metadata.resource_version
    core.create_namespaced_config_map(cluster.namespace, config_map("one"))
    cluster.fault(410)
    options = {"resource_version": before, "timeout_seconds": 5}
    with pytest.raises(client.ApiException) as refused:
        list(Watch().stream(core.list_namespaced_config_map, cluster.namespace, **options))
    assert refused.value.status == 410


def test_scale_and_status(cluster: Cluster, apps: Any) -> None:
    apps.create_namespaced_deployment(cluster.namespace, workload(replicas=1))
    cluster.wait("deployment/web")
    scale = apps.read_namespaced_deployment_scale("web", cluster.namespace)
    assert (scale.spec.replicas, scale.status.selector) == (1, "app=web")
    scale.spec.replicas = 2
    apps.replace_namespaced_deployment_scale("web", cluster.namespace, scale)
    cluster.wait("pods", count=2)
    cluster.wait("deployment/web")
    assert apps.read_namespaced_deployment_status("web", cluster.namespace).status.ready_replicas == 2


def test_delete_with_preconditions(cluster: Cluster, core: Any) -> None:
    core.create_namespaced_config_map(cluster.namespace, config_map("one"))
    uid = core.read_namespaced_config_map("one", cluster.namespace).metadata.uid
    for asked, code in (("another", 409), (uid, None)):
        body = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=asked))
        if code:
            with pytest.raises(client.ApiException) as refused:
                core.delete_namespaced_config_map("one", cluster.namespace, body=body)
            assert refused.value.status == code
        else:
            core.delete_namespaced_config_map("one", cluster.namespace, body=body)
    assert core.list_namespaced_config_map(cluster.namespace).items == []


@pytest.mark.parametrize(("propagation", "left"), [("Foreground", 0), ("Background", 0), ("Orphan", 1)])
def test_delete_with_propagation(cluster: Cluster, apps: Any, propagation: str, left: int) -> None:
    apps.create_namespaced_deployment(cluster.namespace, workload(replicas=1))
    cluster.wait("deployment/web")
    apps.delete_namespaced_deployment("web", cluster.namespace, propagation_policy=propagation)
    cluster.wait("deployment/web", gone)
    if not left:
        cluster.wait("replicasets", gone)
    assert len(apps.list_namespaced_replica_set(cluster.namespace).items) == left


def test_delete_collection(cluster: Cluster, core: Any) -> None:
    core.create_namespaced_config_map(cluster.namespace, config_map("one", tier="a"))
    core.create_namespaced_config_map(cluster.namespace, config_map("two", tier="b"))
    core.delete_collection_namespaced_config_map(cluster.namespace, label_selector="tier=a")
    assert [each.metadata.name for each in core.list_namespaced_config_map(cluster.namespace).items] == ["two"]


def test_namespaces_nodes_and_events(cluster: Cluster, core: Any, apps: Any) -> None:
    assert core.read_namespace(cluster.namespace).status.phase == "Active"
    assert len(core.list_node().items) == 3
    apps.create_namespaced_deployment(cluster.namespace, workload(replicas=1))
    cluster.wait("deployment/web")
    chosen = "involvedObject.kind=Deployment,reason=ScalingReplicaSet"
    cluster.wait("events", lambda events: any(each["reason"] == "ScalingReplicaSet" for each in events))
    assert len(core.list_namespaced_event(cluster.namespace, field_selector=chosen).items) == 1


def test_create_from_yaml(cluster: Cluster, core: Any) -> None:
    from kubernetes.utils import FailToCreateError, create_from_dict

    maps = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    create_from_dict(cluster.kubernetes, maps, namespace=cluster.namespace)
    assert core.read_namespaced_config_map("one", cluster.namespace).data is None
    with pytest.raises(FailToCreateError):
        create_from_dict(cluster.kubernetes, maps, namespace=cluster.namespace)


def test_dry_run_stores_nothing(cluster: Cluster, core: Any) -> None:
    core.create_namespaced_config_map(cluster.namespace, config_map("one"), dry_run="All")
    assert core.list_namespaced_config_map(cluster.namespace).items == []


def test_custom_objects_api_reads_built_in_kinds(cluster: Cluster, apps: Any) -> None:
    apps.create_namespaced_deployment(cluster.namespace, workload())
    objects = client.CustomObjectsApi(cluster.kubernetes)
    found = objects.get_namespaced_custom_object("apps", "v1", cluster.namespace, "deployments", "web")
    assert found["metadata"]["name"] == "web"


def test_leader_election(cluster: Cluster) -> None:
    leases = client.CoordinationV1Api(cluster.kubernetes)
    lease = client.V1Lease(
        metadata=client.V1ObjectMeta(name="leader"),
        spec=client.V1LeaseSpec(holder_identity="one", lease_duration_seconds=15),
    )
    leases.create_namespaced_lease(cluster.namespace, lease)
    first, second = (leases.read_namespaced_lease("leader", cluster.namespace) for _ in range(2))
    first.spec.holder_identity, second.spec.holder_identity = "two", "three"
    leases.replace_namespaced_lease("leader", cluster.namespace, first)
    with pytest.raises(client.ApiException) as refused:
        leases.replace_namespaced_lease("leader", cluster.namespace, second)
    assert refused.value.status == 409


def test_the_dynamic_client(cluster: Cluster) -> None:
    from kubernetes.dynamic import DynamicClient
    from kubernetes.dynamic.exceptions import NotFoundError

    deployments = DynamicClient(cluster.kubernetes).resources.get(api_version="apps/v1", kind="Deployment")
    deployments.create(body=workload(replicas=1), namespace=cluster.namespace)
    cluster.wait("deployment/web")
    merge = "application/merge-patch+json"
    patch = {"metadata": {"name": "web"}, "spec": {"replicas": 2}}
    deployments.patch(body=patch, namespace=cluster.namespace, content_type=merge)
    assert deployments.get(name="web", namespace=cluster.namespace).spec.replicas == 2
    assert deployments.scale.get(name="web", namespace=cluster.namespace).spec.replicas == 2
    deployments.delete(name="web", namespace=cluster.namespace)
    with pytest.raises(NotFoundError):
        deployments.get(name="web", namespace=cluster.namespace)


def test_the_asynchronous_client(cluster: Cluster) -> None:
    aio = pytest.importorskip("kubernetes.aio", reason="from release 36 on")

    async def names() -> list[str]:
        await aio.config.load_kube_config(str(cluster.kubeconfig))
        async with aio.client.ApiClient() as api:
            core = aio.client.CoreV1Api(api)
            await core.create_namespaced_config_map(cluster.namespace, config_map("one"))
            return [each.metadata.name for each in (await core.list_namespaced_config_map(cluster.namespace)).items]

    assert asyncio.run(names()) == ["one"]


def test_what_is_not_served_is_refused(cluster: Cluster, core: Any, apps: Any) -> None:
    apps.create_namespaced_deployment(cluster.namespace, workload(replicas=1))
    [pod] = cluster.wait("pods", count=1)
    with pytest.raises(client.ApiException) as refused:
        core.read_namespaced_pod_log(pod["metadata"]["name"], cluster.namespace)
    assert refused.value.status == 404
