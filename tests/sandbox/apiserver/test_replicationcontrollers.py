"""ReplicationControllers: defaults, rules, scale, generation, tables, and what a delete does by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.api_harness import TABLE, Api, pod

Obj = dict[str, Any]
RCS = "/api/v1/namespaces/default/replicationcontrollers"
PODS = "/api/v1/namespaces/default/pods"


def template(labels: Obj | None = None, **spec: Any) -> Obj:
    return {
        "metadata": {"labels": {"app": "web"} if labels is None else labels},
        "spec": {"containers": [{"name": "c", "image": "nginx"}], **spec},
    }


def controller(name: str = "web", **spec: Any) -> Obj:
    whole = {"replicas": 2, "selector": {"app": "web"}, "template": template(), **spec}
    given = {field: value for field, value in whole.items() if value is not None}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": name}, "spec": given}


def test_what_is_left_out_is_filled_in(api: Api) -> None:
    """One replica; the template's labels as selector and as labels of the controller itself."""
    made = api.create(RCS, controller(replicas=None, selector=None))
    assert made["spec"]["replicas"] == 1
    assert made["spec"]["selector"] == {"app": "web"}
    assert made["metadata"]["labels"] == {"app": "web"}
    assert made["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert (made["metadata"]["generation"], made["status"]) == (1, {"replicas": 0})


def test_what_is_given_is_kept(api: Api) -> None:
    given = controller(template=template({"app": "web", "tier": "front"}))
    given["metadata"]["labels"] = {"own": "label"}
    made = api.create(RCS, given)
    assert made["spec"]["selector"] == {"app": "web"}
    assert made["metadata"]["labels"] == {"own": "label"}


MISMATCH = 'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"replicas": -1}, "spec.replicas: Invalid value: -1: must be greater than", id="replicas"),
        pytest.param({"minReadySeconds": -1}, "spec.minReadySeconds: Invalid value: -1", id="minReadySeconds"),
        pytest.param({"selector": {"app": "db"}}, MISMATCH, id="another value"),
        pytest.param({"selector": {"app": "web", "x": "y"}}, MISMATCH, id="one label more"),
        pytest.param({"selector": {}, "template": template({})}, "spec.selector: Required value", id="no selector"),
        pytest.param({"template": None}, "spec.template: Required value", id="no template"),
        pytest.param(
            {"template": template(restartPolicy="Never")},
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            id="restartPolicy",
        ),
        pytest.param(
            {"template": template(activeDeadlineSeconds=5)},
            "spec.template.spec.activeDeadlineSeconds: Forbidden: "
            "activeDeadlineSeconds in ReplicationController is not Supported",
            id="activeDeadlineSeconds",
        ),
    ],
)
def test_what_may_not_be(api: Api, spec: Obj, message: str) -> None:
    code, status = api.call("POST", RCS, controller(**spec))
    assert (code, status["reason"]) == (422, "Invalid")
    assert message in status["message"]


def test_a_selector_of_expressions_is_no_map_of_labels(api: Api) -> None:
    code, status = api.call("POST", RCS, controller(selector={"matchLabels": {"app": "web"}}))
    assert code == 400
    assert "ReplicationController" in status["message"]


def test_the_selector_may_change_while_the_template_follows(api: Api) -> None:
    made = api.create(RCS, controller())
    made["spec"]["selector"] = {"app": "api"}
    code, status = api.call("PUT", f"{RCS}/web", made)
    assert (code, MISMATCH in status["message"]) == (422, True)
    made["spec"]["template"]["metadata"]["labels"] = {"app": "api"}
    changed = api.put(f"{RCS}/web", made)
    assert (changed["spec"]["selector"], changed["metadata"]["generation"]) == ({"app": "api"}, 2)


def test_generation_counts_changes_of_the_spec_only(api: Api) -> None:
    api.create(RCS, controller())
    api.patch(f"{RCS}/web", {"metadata": {"annotations": {"a": "b"}}})
    status = {"replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 1, "observedGeneration": 1}
    assert api.patch(f"{RCS}/web/status", {"status": status})["metadata"]["generation"] == 1
    assert api.patch(f"{RCS}/web", {"spec": {"replicas": 3}, "status": {"replicas": 9}})["status"] == status
    assert api.get(f"{RCS}/web")["metadata"]["generation"] == 2


def test_a_status_that_cannot_be_true(api: Api) -> None:
    api.create(RCS, controller())
    code, answer = api.call(
        "PATCH", f"{RCS}/web/status", {"status": {"replicas": 1, "readyReplicas": 2}}, "application/merge-patch+json"
    )
    assert code == 422
    assert "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas" in answer["message"]


def test_scale(api: Api) -> None:
    api.create(RCS, controller(selector={"app": "web", "tier": "a"}, template=template({"app": "web", "tier": "a"})))
    scale = api.get(f"{RCS}/web/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 0, "selector": "app=web,tier=a"})
    scale["spec"]["replicas"] = 7
    api.put(f"{RCS}/web/scale", scale)
    assert api.get(f"{RCS}/web")["spec"]["replicas"] == 7


def test_a_label_may_be_named_like_a_field_of_a_selector(api: Api) -> None:
    labels = {"matchLabels": "x"}
    api.create(RCS, controller(selector=labels, template=template(labels)))
    assert api.get(f"{RCS}/web/scale")["status"]["selector"] == "matchLabels=x"


def test_table(api: Api) -> None:
    api.create(RCS, controller())
    api.patch(f"{RCS}/web/status", {"status": {"replicas": 2, "readyReplicas": 1}})
    code, body = api.raw("GET", RCS, headers={"Accept": TABLE})
    assert code == 200
    table = json.loads(body)
    assert [(c["name"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", 0),
        ("Desired", 0),
        ("Current", 0),
        ("Ready", 0),
        ("Age", 0),
        ("Containers", 1),
        ("Images", 1),
        ("Selector", 1),
    ]
    assert table["rows"][0]["cells"] == ["web", 2, 2, 1, "0s", "c", "nginx", "app=web"]


def test_status_replicas_can_be_selected(api: Api) -> None:
    api.create(RCS, controller())
    assert [o["metadata"]["name"] for o in api.get(RCS, fieldSelector="status.replicas=0")["items"]] == ["web"]
    assert api.get(RCS, fieldSelector="status.replicas!=0")["items"] == []


@pytest.mark.parametrize("policy", [None, "Background"])
def test_a_delete_that_says_nothing_leaves_the_pods(api: Api, policy: str | None) -> None:
    owner = api.create(RCS, controller())["metadata"]
    owned = pod("a", {"app": "web"})
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ReplicationController", "name": "web", "uid": owner["uid"], "controller": True}
    ]
    api.create(PODS, owned)
    watch = api.watch(PODS, resourceVersion=api.get(PODS)["metadata"]["resourceVersion"])
    api.delete(f"{RCS}/web", {"propagationPolicy": policy} if policy else None)
    if policy is None:
        released = watch.next()
        assert (released["type"], "ownerReferences" in released["object"]["metadata"]) == ("MODIFIED", False)
    else:
        assert watch.until("DELETED")["object"]["metadata"]["name"] == "a"


def test_discovery(api: Api) -> None:
    resources = {r["name"]: r for r in api.get("/api/v1")["resources"]}
    entry = resources["replicationcontrollers"]
    assert (entry["shortNames"], entry["categories"]) == (["rc"], ["all"])
    scale = resources["replicationcontrollers/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
    assert "replicationcontrollers/status" in resources
