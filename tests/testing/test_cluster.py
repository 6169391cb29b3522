"""A cluster in a test, as a test uses it: the same on the twin and, with OARLOCK_TEST_REDIS=1, on a Redis server."""

from __future__ import annotations

import random
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from oarlock.testing import Cluster, NotInTime, Refused, condition, exists, gone, ready
from tests.testing.manifests import workload

TEXT = """
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: default}
"""


@pytest.mark.parametrize(
    ("kind", "replicas", "pods"),
    [("Deployment", 3, 3), ("ReplicaSet", 2, 2), ("DaemonSet", None, 3)],
)
def test_workloads_get_their_pods(cluster: Cluster, kind: str, replicas: int | None, pods: int) -> None:
    made = cluster.create(workload(kind, replicas=replicas))
    assert made["metadata"]["namespace"] == cluster.namespace
    assert cluster.wait(f"{kind.lower()}/web")["metadata"]["uid"] == made["metadata"]["uid"]
    found = cluster.wait("pods", count=pods, selector="app=web")
    assert {each["status"]["phase"] for each in found} == {"Running"}
    assert {each["metadata"]["name"] for each in cluster.list("po")} == {each["metadata"]["name"] for each in found}


def test_a_replication_controller_gets_its_pods(cluster: Cluster) -> None:
    obj = workload("ReplicationController", replicas=2)
    obj |= {"apiVersion": "v1", "spec": {**obj["spec"], "selector": {"app": "web"}}}
    cluster.create(obj)
    cluster.wait("rc/web")
    cluster.wait("pods", count=2)


def test_a_rollout_and_the_end_of_all_it_made(cluster: Cluster) -> None:
    cluster.create(workload(replicas=2))
    cluster.wait("deployment/web")
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
    assert cluster.patch("deployment/web", image)["metadata"]["generation"] == 2
    cluster.wait("deployment/web")
    pods = cluster.wait("pods", count=2)
    assert {each["spec"]["containers"][0]["image"] for each in pods} == {"nginx:2"}
    assert len(cluster.list("replicasets")) == 2
    cluster.delete("deployment/web", propagation="Foreground")
    for what in ("deployment/web", "replicasets", "pods"):
        cluster.wait(what, gone)


def test_sources_of_objects(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(TEXT.replace("one", "three").replace("two", "four"))
    made = cluster.create_all(TEXT) + cluster.create_all(path)
    places = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in made]
    own = cluster.namespace
    assert places == [(own, "one"), ("default", "two"), (own, "three"), ("default", "four")]
    assert [each["metadata"]["name"] for each in cluster.list("cm", selector="!x")] == ["one", "three"]
    assert {"two", "four"} <= {each["metadata"]["name"] for each in cluster.list("cm", namespace="default")}
    for name in ("two", "four"):
        cluster.delete(f"cm/{name}", namespace="default")


@pytest.mark.parametrize(
    ("call", "code", "text"),
    [
        (lambda c: c.get("pod/none"), 404, 'get pod/none: 404 NotFound: pods "none" not found'),
        (lambda c: c.delete("deployment/none"), 404, "delete deployment/none: 404 NotFound"),
        (lambda c: c.patch("cm/none", {}), 404, "patch configmap/none: 404 NotFound"),
        (lambda c: c.list("pods", selector="a in"), 400, "list pods with a in: 400 BadRequest"),
        (lambda c: c.create(workload(replicas=-1)), 422, "create deployment/web: 422 Invalid"),
    ],
)
def test_refusals(cluster: Cluster, call: object, code: int, text: str) -> None:
    with pytest.raises(Refused) as refused:
        call(cluster)  # type: ignore[operator]
    assert refused.value.code == code
    assert text in str(refused.value)


def test_an_unknown_kind_names_those_there_are(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match=r"no kind 'gizmo' .* deployment, .*pod,"):
        cluster.get("gizmo/x")


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        ({"kind": "Pod"}, "an object needs apiVersion and kind, here are None and 'Pod'"),
        (
            {**workload(), "apiVersion": "extensions/v1beta1"},
            "no kind 'Deployment' of group 'extensions' on this server",
        ),
    ],
)
def test_objects_of_no_kind(cluster: Cluster, obj: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        cluster.create(obj)


def test_all_namespaces_and_none(cluster: Cluster, cluster_of_session: Cluster) -> None:
    with cluster_of_session.fresh("other") as other:
        for each in (cluster, other):
            each.create(workload(replicas=1, name="everywhere"))
        cluster.wait("pods", count=2, selector="app=everywhere", namespace="")
        cluster.wait("pods", count=1, selector="app=everywhere")
        assert len(cluster.list("pods", selector="app=everywhere", namespace="")) == 2
    assert [each["metadata"]["name"] for each in cluster.wait("nodes", count=3)] == ["node-0", "node-1", "node-2"]
    assert cluster.wait("node/node-1")["kind"] == "Node"


def test_every_test_has_a_namespace_of_its_own(cluster: Cluster, cluster_of_session: Cluster) -> None:
    assert cluster.namespace.startswith("test-every-test-has-a-namespace")
    with cluster_of_session.fresh("other") as other:
        other.create(workload(replicas=1))
        other.wait("deployment/web")
        assert cluster.list("deployments") == []
    cluster.wait(f"namespace/{other.namespace}", gone)


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_uses_the_kubeconfig(cluster: Cluster) -> None:
    cluster.create(workload(replicas=1))
    cluster.wait("deployment/web")
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "get", "deployments", "-o", "name"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "deployment.apps/web\n"


# -- waiting -------------------------------------------------------------------------------------------------------


def test_a_wait_in_vain_tells_what_there_is(cluster: Cluster) -> None:
    bad = workload(replicas=2)
    bad["spec"]["template"]["metadata"]["annotations"] = {"oarlock.io/sim-never-ready": "true"}
    cluster.create(bad)
    cluster.wait("pods", lambda pods: all(each["status"]["phase"] == "Running" for each in pods), count=2)
    with pytest.raises(NotInTime) as failed:
        cluster.wait("deployment/web", timeout_s=0.2)
    text = str(failed.value)
    assert text.splitlines()[0] == (
        f"deployment/web in namespace {cluster.namespace} was not ready within 0.2 s: "
        "status.availableReplicas is 0, not 2"
    )
    for part in ("replicasets:", "pods:", "ScalingReplicaSet", "kind: Deployment", "0/2"):
        assert part in text, part


@pytest.mark.parametrize(
    ("what", "until", "count", "text"),
    [
        ("deployment/web", ready, None, "it does not exist\n\nThere is no deployment in namespace"),
        ("deployment/web", condition("Available"), None, "was not condition('Available', 'True') within"),
        ("deployment/web", lambda obj: obj, None, "was not as the condition of the test wants it within"),
        ("pods", exists, None, "there is none"),
        ("pods", exists, 2, "there are 0, not 2"),
        ("configmap/here", gone, None, "configmap/here in namespace"),
        ("configmap/gone", exists, None, "There are: here in namespace"),
        ("configmap/here", lambda obj: obj["data"], None, "the condition raised KeyError: 'data'"),
        ("configmap/here", lambda obj: len(obj) == 0, None, "the condition returned False"),
        ("configmap/here", condition("Ready"), None, "it has no condition Ready"),
    ],
)
def test_what_was_missing(cluster: Cluster, what: str, until: object, count: int | None, text: str) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "here"}})
    with pytest.raises(NotInTime) as failed:
        cluster.wait(what, until, count=count, timeout_s=0.05)  # type: ignore[arg-type]
    assert text in str(failed.value)


def test_a_selector_that_cannot_be_read(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="selector 'a in': "):
        cluster.wait("pods", selector="a in")


def test_a_condition_may_look_elsewhere(cluster: Cluster) -> None:
    """It is asked again though nothing of the kind waited for changes."""
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}})
    asked: list[int] = []

    def third(_: object) -> bool:
        asked.append(1)
        return len(asked) == 3

    assert cluster.wait("configmap/one", third)["metadata"]["name"] == "one"


# -- time ----------------------------------------------------------------------------------------------------------


def test_min_ready_seconds_pass_at_once(cluster: Cluster) -> None:
    cluster.create(workload(replicas=2, minReadySeconds=3600, progressDeadlineSeconds=7200))
    cluster.wait("pods", count=2)
    before = cluster.wait("deployment/web", lambda obj: obj["status"]["readyReplicas"] == 2)
    assert before["status"].get("availableReplicas", 0) == 0
    cluster.time.advance(3601)
    cluster.wait("deployment/web")


def test_a_deadline_passes_at_once(cluster: Cluster) -> None:
    stuck = workload(replicas=1, progressDeadlineSeconds=600)
    stuck["spec"]["template"]["metadata"]["annotations"] = {"oarlock.io/sim-never-ready": "true"}
    cluster.create(stuck)
    cluster.wait("deployment/web", lambda obj: obj["status"]["updatedReplicas"] == 1)  # the last progress there is
    now_s = cluster.time.now()
    cluster.time.advance(700)
    assert cluster.time.now() >= now_s + 700
    found = cluster.wait("deployment/web", condition("Progressing", "False"))
    reasons = [each["reason"] for each in found["status"]["conditions"] if each["type"] == "Progressing"]
    assert reasons == ["ProgressDeadlineExceeded"]


def test_all_stamps_tell_the_same_time(cluster: Cluster) -> None:
    cluster.time.advance(3600)
    begun = datetime.fromtimestamp(cluster.time.now() - 1, tz=UTC).isoformat()
    made = cluster.create(workload(replicas=1))
    found = cluster.wait("deployment/web")
    (pod,) = cluster.wait("pods", count=1)
    events = cluster.wait("events", lambda events: len(events) >= 2 and events)
    stamps = [each["metadata"]["creationTimestamp"] for each in (made, pod)]
    stamps += [each["lastTransitionTime"] for each in found["status"]["conditions"] + pod["status"]["conditions"]]
    stamps += [each["lastTimestamp"] for each in events]
    assert min(stamps) >= begun[:19]


def test_nodes_are_moved_with_the_rest(cluster: Cluster) -> None:
    late = workload(replicas=1)
    late["spec"]["template"]["metadata"]["annotations"] = {"oarlock.io/sim-ready-after-ms": "900000"}
    cluster.create(late)
    cluster.wait("pods", lambda pods: pods[0]["spec"]["nodeName"], count=1)
    with pytest.raises(NotInTime):
        cluster.wait("pods", count=1, timeout_s=0.1)
    cluster.time.advance(901)
    cluster.wait("deployment/web")


@pytest.mark.parametrize("seed", range(6))
def test_time_may_be_moved_while_work_is_under_way(cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    cluster.create(workload(replicas=3))
    for _ in range(4):
        cluster.time.advance(chance.choice([0, 1, 5, 60, 4000]))
        cluster.patch("deployment/web", {"spec": {"replicas": chance.randint(1, 6)}})
    replicas = cluster.wait("deployment/web")["spec"]["replicas"]
    cluster.wait("pods", count=replicas)


def test_time_only_goes_forward(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="time only goes forward"):
        cluster.time.advance(-1)
