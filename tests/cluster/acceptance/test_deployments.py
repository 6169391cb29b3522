"""Deployments: the object, its ReplicaSets and its status, with kubectl.

Numbers in names: upstream: test/integration/deployment/deployment_test.go (23_7) and test/e2e/apps/deployment.go
(23_8), in the order in which they are counted there.
"""

from __future__ import annotations

import json

import pytest

from tests.cluster.acceptance.deployments import (
    DESIRED,
    REVISION,
    TEMPLATE_HASH,
    condition,
    counts,
    deployment,
    images,
    pods_of,
    replicasets,
    revision,
    rolled_out,
    rolling,
    sizes,
    status,
)
from tests.cluster.acceptance.replicas import change_status
from tests.cluster.acceptance.stages import Stage
from tests.e2e.e2e_kubectl import NEVER_READY, Kubectl, Obj, controlled_by, template, until

pytestmark = [pytest.mark.kubectl]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
COUNTS_TERMINATING = (1, 35)
"""The version whose servers keep terminatingReplicas unless told otherwise; the embedded one keeps it, too."""


def patch(kubectl: Kubectl, what: str, name: str, body: Obj, code: int = 0) -> str:
    return kubectl.run("patch", what, name, "--type=merge", "-p", json.dumps(body), code=code)


def path(kubectl: Kubectl, name: str = "web") -> str:
    return f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments/{name}"


# -- what is made ----------------------------------------------------------------------------------------------------


def test_23_7_1_a_new_one(kubectl: Kubectl) -> None:
    made = deployment()
    made["metadata"]["annotations"] = {"example.com/a": "b"}
    kubectl.apply(made)
    pods = rolled_out(kubectl, 2)
    found = kubectl.json("get", "deploy", "web")
    assert found["metadata"]["annotations"][REVISION] == "1"
    (newest,) = replicasets(kubectl)
    meta, spec = newest["metadata"], newest["spec"]
    hash_ = meta["labels"][TEMPLATE_HASH]
    assert meta["name"] == f"web-{hash_}"
    kept = {key: value for key, value in meta["annotations"].items() if not key.endswith("max-replicas")}
    assert kept == {"example.com/a": "b", REVISION: "1", DESIRED: "2"}, "and not what was applied last"
    assert spec["selector"]["matchLabels"] == {"app": "web", TEMPLATE_HASH: hash_}
    assert {each["metadata"]["labels"][TEMPLATE_HASH] for each in [*pods, spec["template"]]} == {hash_}
    assert {controlled_by(pod) for pod in pods} == {meta["uid"]}
    assert condition(kubectl, "Available") == ("True", "MinimumReplicasAvailable")
    until(lambda: condition(kubectl, "Progressing") == ("True", "NewReplicaSetAvailable"), 15, "it is complete")
    until(
        lambda: "ScalingReplicaSet" in kubectl.run("describe", "deploy", "web"), 15, "events follow in their own time"
    )
    assert "successfully rolled out" in kubectl.run("rollout", "status", "deploy/web")


def test_23_7_3_the_selector_stays(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=0))
    body = {"spec": {"selector": {"matchLabels": {"app": "other"}}, "template": template("other")}}
    assert "field is immutable" in patch(kubectl, "deploy", "web", body, code=1)


REFUSED = [
    ({"strategy": {"type": "Recreate", "rollingUpdate": {}}}, "spec.strategy.rollingUpdate: Forbidden: may not be"),
    (rolling(0, "0%"), "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "),
    (rolling(1, "101%"), "must not be greater than 100%"),
    (
        {"progressDeadlineSeconds": 5, "minReadySeconds": 5},
        "spec.progressDeadlineSeconds: Invalid value: 5: must be gr",
    ),
    ({"revisionHistoryLimit": -1}, "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"),
    ({"selector": {}}, "empty selector is invalid for deployment"),
    ({"selector": {"matchLabels": {"app": "other"}}}, "`selector` does not match template `labels`"),
    ({"template": template("web", restartPolicy="Never")}, 'restartPolicy: Unsupported value: "Never": supported val'),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED)
def test_what_may_not_be(kubectl: Kubectl, spec: Obj, message: str) -> None:
    refused = kubectl.run("create", "-f", "-", stdin=json.dumps(deployment(**spec)), code=1)
    assert 'The Deployment "web" is invalid' in refused
    assert message in refused


def test_the_generation_counts_spec_and_annotations(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=0))
    rolled_out(kubectl, 0)

    def generation() -> int:
        return int(kubectl.json("get", "deploy", "web")["metadata"]["generation"])

    before = generation()
    for body in ({"metadata": {"annotations": {"a": "1"}}}, {"spec": {"minReadySeconds": 1}}):
        patch(kubectl, "deploy", "web", body)
        before += 1
        assert generation() == before
    patch(kubectl, "deploy", "web", {"metadata": {"labels": {"a": "1"}}})
    change_status(kubectl, path(kubectl), lambda said: {**said, "conditions": []})
    assert generation() == before


def test_23_8_12_status_brings_annotations_and_neither_spec_nor_labels(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=0))
    rolled_out(kubectl, 0)
    raw = path(kubectl)
    own = {"type": "StatusUpdate", "status": "True", "reason": "E2E", "message": "set from a test"}
    change_status(
        Kubectl(kubectl.kubeconfig, kubectl.home),
        raw,
        lambda said: {**said, "conditions": [*(said.get("conditions") or ()), own]},
    )

    def written() -> bool:
        found = json.loads(kubectl.run("get", "--raw", raw))
        found["metadata"]["annotations"]["example.com/a"] = "b"
        found["metadata"]["labels"]["a"] = "b"
        found["spec"]["replicas"] = 9
        client = Kubectl(kubectl.kubeconfig, kubectl.home)
        client.run("replace", "--raw", f"{raw}/status", "-f", "-", stdin=json.dumps(found))
        return True

    until(written, 15, "the status is written")
    found = kubectl.json("get", "deploy", "web")
    assert found["metadata"]["annotations"]["example.com/a"] == "b"
    assert ("a" in found["metadata"]["labels"], found["spec"]["replicas"]) == (False, 0)
    kubectl.run("scale", "deploy", "web", "--replicas=1")
    rolled_out(kubectl, 1)
    assert condition(kubectl, "StatusUpdate") == ("True", "E2E"), "conditions of others survive"


# -- size ------------------------------------------------------------------------------------------------------------


def test_23_7_14_23_8_10_the_scale_subresource(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=2))
    rolled_out(kubectl, 2)
    raw = f"{path(kubectl)}/scale"
    found = json.loads(kubectl.run("get", "--raw", raw))
    assert (found["spec"], found["status"]) == ({"replicas": 2}, {"replicas": 2, "selector": "app=web"})
    found["spec"]["replicas"] = 3
    kubectl.run("replace", "--raw", raw, "-f", "-", stdin=json.dumps(found))
    rolled_out(kubectl, 3)
    kubectl.run("scale", "deploy", "web", "--replicas=0")
    rolled_out(kubectl, 0)
    assert sizes(kubectl) == [0]
    assert revision(kubectl.json("get", "deploy", "web")) == 1, "another size is no other revision"


def test_23_7_12_available_when_they_have_been_ready_long_enough(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=3, minReadySeconds=3600, progressDeadlineSeconds=7200))
    until(lambda: counts(kubectl) == [3, 3, 3, 0], 30, "three ready ones, none of them available")
    assert status(kubectl)["unavailableReplicas"] == 3
    assert condition(kubectl, "Available") == ("False", "MinimumReplicasUnavailable")
    patch(kubectl, "deploy", "web", {"spec": {"minReadySeconds": 1}})
    rolled_out(kubectl, 3)
    assert "unavailableReplicas" not in status(kubectl)
    assert [each["spec"]["minReadySeconds"] for each in replicasets(kubectl)] == [1]


def test_23_7_16_pods_on_their_way_out_are_counted(kubectl: Kubectl, cluster: Stage) -> None:
    """Pods that no node takes: what a kubelet ends is on its way out no longer, but has ended."""
    kubectl.apply(deployment(replicas=2, template=template("web", nodeSelector={"no": "where"})))
    counted = cluster.embedded or cluster.version >= COUNTS_TERMINATING

    def told() -> list[int | None]:
        said = status(kubectl)
        return [said.get("replicas"), said.get("terminatingReplicas")]

    until(lambda: told() == [2, 0 if counted else None], 20, "two pods")
    name = pods_of(kubectl)[0]["metadata"]["name"]
    patch(kubectl, "pod", name, {"metadata": {"finalizers": ["example.com/hold"]}})
    kubectl.run("delete", "pod", name, "--wait=false")
    until(lambda: len(kubectl.items("pods", "-l", "app=web")) == 3, 20, "its successor stands beside it")
    until(lambda: told() == [2, 1 if counted else None], 20, "older servers drop what they do not know")
    patch(kubectl, "pod", name, {"metadata": {"finalizers": None}})
    until(lambda: told() == [2, 0 if counted else None], 20, "two pods again")


# -- whose ReplicaSets -----------------------------------------------------------------------------------------------


def test_23_7_13_23_7_15_released_and_taken_back(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    rolled_out(kubectl, 2)
    (first,) = replicasets(kubectl)
    name = first["metadata"]["name"]
    kubectl.run("label", "rs", name, "app=free", "--overwrite")
    until(lambda: not controlled_by(kubectl.json("get", "rs", name)), 15, "it is released")
    until(lambda: status(kubectl).get("collisionCount") == 1, 20, "its name is taken: another one is made")
    until(lambda: [each["spec"]["replicas"] for each in replicasets(kubectl)] == [2], 20, "of the same template")
    kubectl.run("label", "rs", name, "app=web", "--overwrite")
    until(lambda: len(replicasets(kubectl)) == 2, 20, "it is taken back")
    until(lambda: sorted(sizes(kubectl)) == [0, 2], 20, "one of them is enough")
    rolled_out(kubectl, 2)


def test_23_8_2_an_existing_replicaset_is_adopted_and_replaced(kubectl: Kubectl) -> None:
    orphan = {**deployment("old", 1, "nginx:0"), "kind": "ReplicaSet"}
    orphan["metadata"]["labels"] = {"app": "web"}
    orphan["metadata"]["annotations"] = {REVISION: "3546343826724305832"}
    orphan["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    orphan["spec"]["template"] = template("web", "nginx:0")
    kubectl.apply(orphan)
    until(lambda: kubectl.json("get", "rs", "old")["status"].get("readyReplicas") == 1, 30, "its pod is ready")
    kubectl.apply(deployment(replicas=1))
    assert images(rolled_out(kubectl, 1)) == {"nginx:1"}
    old, new = replicasets(kubectl)
    assert (old["metadata"]["name"], old["spec"]["replicas"]) == ("old", 0)
    assert revision(new) == 3546343826724305833


def test_23_7_6_a_name_that_is_taken(kubectl: Kubectl) -> None:
    """The ReplicaSet was changed by hand, so it is of another template, and has the name of this one."""
    kubectl.apply(deployment())
    rolled_out(kubectl, 2)
    (first,) = replicasets(kubectl)
    body = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}}
    patch(kubectl, "rs", first["metadata"]["name"], body)
    until(lambda: status(kubectl).get("collisionCount") == 1, 20, "the collision is counted")
    until(lambda: revision(kubectl.json("get", "deploy", "web")) == 2, 20, "another revision")
    pods = rolled_out(kubectl, 2)
    old, new = replicasets(kubectl)
    assert (old["metadata"]["uid"], old["spec"]["replicas"], new["spec"]["replicas"]) == (
        *(first["metadata"]["uid"], 0),
        2,
    )
    assert {controlled_by(pod) for pod in pods} == {new["metadata"]["uid"]}


def test_23_7_9_overlapping_ones_keep_to_their_own(kubectl: Kubectl) -> None:
    for name, count in (("one", 1), ("two", 2)):
        made = deployment(name, count, f"nginx:{count}")
        made["spec"]["selector"] = {"matchLabels": {"app": "web"}}
        made["spec"]["template"] = template("web", f"nginx:{count}")
        kubectl.apply(made)
    for name, count in (("one", 1), ("two", 2)):
        rolled_out(kubectl, count, name)
    kubectl.run("scale", "deploy", "one", "--replicas=3")
    rolled_out(kubectl, 3, "one")
    assert (sizes(kubectl, "one"), sizes(kubectl, "two"), len(pods_of(kubectl))) == ([3], [2], 5)


# -- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_23_8_1_23_8_7_delete_with_each_cascade(kubectl: Kubectl, cascade: str) -> None:
    kubectl.apply(deployment(replicas=2))
    before = rolled_out(kubectl, 2)
    (kept,) = replicasets(kubectl)
    kubectl.run("delete", "deploy", "web", f"--cascade={cascade}", "--timeout=120s")
    assert kubectl.items("deploy") == []
    if cascade != "orphan":
        until(lambda: not kubectl.items("rs") and not kubectl.items("pods"), 30, "all of it is gone")
        return
    (orphan,) = kubectl.items("rs")
    assert (orphan["metadata"]["uid"], controlled_by(orphan)) == (kept["metadata"]["uid"], "")
    kubectl.apply(deployment(replicas=2))
    after = rolled_out(kubectl, 2)
    assert [each["metadata"]["uid"] for each in replicasets(kubectl)] == [kept["metadata"]["uid"]]
    assert {pod["metadata"]["uid"] for pod in after} == {pod["metadata"]["uid"] for pod in before}


def test_23_8_11_life_cycle_and_delete_collection(kubectl: Kubectl) -> None:
    label = f"test={kubectl.namespace}"
    kubectl.apply(deployment(replicas=1))
    rolled_out(kubectl, 1)
    kubectl.run("label", "deploy", "web", label)
    patch(kubectl, "deploy", "web", {"spec": {"replicas": 2, "template": template("web", "nginx:2")}})
    assert images(rolled_out(kubectl, 2)) == {"nginx:2"}
    kubectl.run("delete", "deploy", "-l", label)
    assert kubectl.items("deploy") == []
    until(lambda: not kubectl.items("rs") and not kubectl.items("pods"), 30, "all of it is gone")


def test_one_that_never_becomes_ready_is_deleted_all_the_same(kubectl: Kubectl) -> None:
    sleepy = template("web", annotations=NEVER_READY)
    kubectl.apply(deployment(template=sleepy))
    until(lambda: counts(kubectl) == [2, 2, 0, 0], 20, "two pods that are not ready")
    kubectl.run("delete", "deploy", "web", "--cascade=foreground", "--timeout=120s")
    assert kubectl.items("rs") + kubectl.items("pods") == []
