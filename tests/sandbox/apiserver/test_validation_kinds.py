"""Rules of ReplicaSets, namespaces, nodes, leases, events and quotas, one line each."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.sandbox.apiserver import defaulting
from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.shapes import check_shape
from oarlock.sandbox.apiserver.validation import validate_create, validate_scale, validate_update

Obj = dict[str, Any]


def template(labels: Obj | None = None, **spec: Any) -> Obj:
    return {
        "metadata": {"labels": labels if labels is not None else {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def replicaset(status: Obj | None = None, **spec: Any) -> Obj:
    whole = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    obj = {"metadata": {"name": "web", "namespace": "default"}, "spec": whole, "status": status or {}}
    return defaulting.apply("ReplicaSet", obj)


def told(errors: list[Any]) -> list[str]:
    return [str(error) for error in errors]


def wants(key: str, operator: str, *values: str) -> Obj:
    term: Obj = {"key": key, "operator": operator}
    return {"matchExpressions": [{**term, "values": list(values)} if values else term]}


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"app": "web"}},
        wants("app", "In", "web", "db"),
        wants("app", "NotIn", "db"),
        wants("app", "Exists"),
        wants("other", "DoesNotExist"),
        {"matchLabels": {"app": "web"}, **wants("app", "Exists")},
    ],
)
def test_a_good_replicaset(selector: Obj) -> None:
    assert told(validate_create("ReplicaSet", replicaset(selector=selector))) == []


MISMATCH = 'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param(
            {"replicas": -1},
            ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
            id="negative replicas",
        ),
        pytest.param(
            {"minReadySeconds": -1},
            ["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"],
            id="negative minReadySeconds",
        ),
        pytest.param({"selector": None}, ["spec.selector: Required value", MISMATCH], id="no selector"),
        pytest.param(
            {"selector": {}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            id="an empty selector",
        ),
        pytest.param({"selector": {"matchLabels": {"app": "db"}}}, [MISMATCH], id="another value"),
        pytest.param({"selector": {"matchLabels": {"app": "web", "x": "y"}}}, [MISMATCH], id="one label more"),
        pytest.param({"selector": wants("app", "NotIn", "web")}, [MISMATCH], id="NotIn"),
        pytest.param({"selector": wants("app", "In", "db")}, [MISMATCH], id="In"),
        pytest.param({"selector": wants("x", "Exists")}, [MISMATCH], id="Exists"),
        pytest.param({"selector": wants("app", "DoesNotExist")}, [MISMATCH], id="DoesNotExist"),
        pytest.param(
            {"template": template({})},
            [MISMATCH.replace('{"app":"web"}', "{}")],
            id="a template without labels",
        ),
        pytest.param(
            {"template": template(restartPolicy="Never")},
            ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
            id="restart policy",
        ),
        pytest.param(
            {"template": template(activeDeadlineSeconds=5)},
            [
                "spec.template.spec.activeDeadlineSeconds: Forbidden: "
                "activeDeadlineSeconds in ReplicaSet is not Supported"
            ],
            id="deadline",
        ),
        pytest.param(
            {"template": template(ephemeralContainers=[{"name": "e", "image": "i"}])},
            ["spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"],
            id="ephemeral containers",
        ),
        pytest.param(
            {"template": template(containers=[])},
            ["spec.template.spec.containers: Required value"],
            id="no container",
        ),
        pytest.param(
            {"template": {}},
            [
                MISMATCH.replace('{"app":"web"}', "{}"),
                "spec.template.spec.containers: Required value",
            ],
            id="no template",
        ),
        pytest.param(
            {"template": {**template(), "metadata": {"labels": {"app": "web", "a b": ""}}}},
            ['spec.template.metadata.labels: Invalid value: "a b": name part must consist of alphanumeric'],
            id="bad template label",
        ),
        pytest.param(
            {
                "template": {
                    **template(),
                    "metadata": {
                        "labels": {"app": "web"},
                        "annotations": {"controller.kubernetes.io/pod-deletion-cost": "x"},
                    },
                }
            },
            [
                "spec.template.metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: "
                'Invalid value: "x": must be a 32bit integer'
            ],
            id="bad deletion cost",
        ),
    ],
)
def test_a_bad_replicaset(spec: Obj, messages: list[str]) -> None:
    errors = told(validate_create("ReplicaSet", replicaset(**spec)))
    assert len(errors) == len(messages)
    for error, message in zip(errors, messages, strict=True):
        assert error.startswith(message)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (wants("app", "Like", "x"), 'matchExpressions[0].operator: Invalid value: "Like": not a valid selector op'),
        (wants("app", "In"), "matchExpressions[0].values: Required value: must be specified when `operator`"),
        (wants("app", "Exists", "x"), "matchExpressions[0].values: Forbidden: may not be specified when"),
        (wants("a b", "Exists"), 'matchExpressions[0].key: Invalid value: "a b": name part'),
        (wants("app", "In", "b c"), 'matchExpressions[0].values[0]: Invalid value: "b c": a valid label'),
        ({"matchLabels": {"a b": "c"}}, 'matchLabels: Invalid value: "a b": name part'),
        ({"matchLabels": {"a": "b c"}}, 'matchLabels: Invalid value: "b c": a valid label'),
    ],
)
def test_a_selector_that_cannot_be_read(selector: Obj, message: str) -> None:
    errors = told(validate_create("ReplicaSet", replicaset(selector=selector)))
    assert errors[0].startswith("spec.selector." + message)
    assert errors[-1].endswith("invalid label selector")


def test_the_selector_is_immutable() -> None:
    new = replicaset(selector={"matchLabels": {"app": "web", "v": "2"}}, template=template({"app": "web", "v": "2"}))
    errors = told(validate_update("ReplicaSet", new, replicaset()))
    assert errors == ['spec.selector: Invalid value: {"matchLabels":{"app":"web","v":"2"}}: field is immutable']


def test_replicas_and_template_may_change() -> None:
    new = replicaset(replicas=5, template=template({"app": "web", "v": "2"}, hostNetwork=True))
    assert validate_update("ReplicaSet", new, replicaset()) == []


def test_an_update_is_validated_like_a_create() -> None:
    errors = told(validate_update("ReplicaSet", replicaset(replicas=-1), replicaset()))
    assert errors == ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]


TOO_MANY = "cannot be greater than status.replicas"


@pytest.mark.parametrize(
    ("status", "messages"),
    [
        ({"replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 2, "availableReplicas": 1}, []),
        ({"replicas": 0, "terminatingReplicas": 4}, []),
        (
            {"replicas": -1},
            [
                "status.replicas: Invalid value: -1: must be greater than or equal to 0",
                f"status.fullyLabeledReplicas: Invalid value: 0: {TOO_MANY}",
                f"status.readyReplicas: Invalid value: 0: {TOO_MANY}",
                f"status.availableReplicas: Invalid value: 0: {TOO_MANY}",
            ],
        ),
        (
            {"replicas": 1, "fullyLabeledReplicas": 2},
            [f"status.fullyLabeledReplicas: Invalid value: 2: {TOO_MANY}"],
        ),
        ({"replicas": 1, "readyReplicas": 2}, [f"status.readyReplicas: Invalid value: 2: {TOO_MANY}"]),
        (
            {"replicas": 1, "readyReplicas": 1, "availableReplicas": 2},
            [
                f"status.availableReplicas: Invalid value: 2: {TOO_MANY}",
                "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas",
            ],
        ),
        (
            {"replicas": 2, "readyReplicas": 1, "availableReplicas": 2},
            ["status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"],
        ),
        (
            {"terminatingReplicas": -1},
            ["status.terminatingReplicas: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"observedGeneration": -1},
            ["status.observedGeneration: Invalid value: -1: must be greater than or equal to 0"],
        ),
    ],
)
def test_a_replicaset_status(status: Obj, messages: list[str]) -> None:
    before = replicaset()
    assert told(validate_update("ReplicaSet", {**before, "status": status}, before)) == messages


def test_scale() -> None:
    assert validate_scale({"spec": {"replicas": 0}}) == []
    assert told(validate_scale({"spec": {"replicas": -1}})) == [
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    ]


@pytest.mark.parametrize("replicas", ["three", 1.5, True, 2**31, [1]])
def test_replicas_of_another_type_are_a_bad_request(replicas: Any) -> None:
    with pytest.raises(ApiError) as refusal:
        check_shape("ReplicaSet", {"metadata": {"name": "web"}, "spec": {"replicas": replicas}})
    assert refusal.value.code == 400
    assert "spec.replicas" in refusal.value.message


def taints(*listed: Obj) -> Obj:
    return {"metadata": {"name": "n"}, "spec": {"taints": list(listed)}}


def quota(hard: Obj, *scopes: str) -> Obj:
    return {"metadata": {"name": "q", "namespace": "d"}, "spec": {"hard": hard, "scopes": list(scopes)}}


def event(about: str | None, namespace: str) -> Obj:
    return {"metadata": {"name": "e", "namespace": namespace}, "involvedObject": {"namespace": about}}


def lease(**spec: Any) -> Obj:
    return {"metadata": {"name": "l", "namespace": "d"}, "spec": spec}


@pytest.mark.parametrize(
    ("kind", "obj", "message"),
    [
        ("Node", taints({"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}), None),
        ("Node", taints({"effect": "NoSchedule"}), "spec.taints[0].key: Required value"),
        ("Node", taints({"key": "a b", "effect": "NoSchedule"}), 'spec.taints[0].key: Invalid value: "a b"'),
        ("Node", taints({"key": "a"}), "spec.taints[0].effect: Required value"),
        ("Node", taints({"key": "a", "effect": "x"}), 'spec.taints[0].effect: Unsupported value: "x"'),
        (
            "Node",
            taints({"key": "a", "effect": "NoExecute"}, {"key": "a", "value": "b", "effect": "NoExecute"}),
            "spec.taints[1]: Duplicate value: ",
        ),
        (
            "Node",
            {"metadata": {"name": "n"}, "status": {"capacity": {"pods": "-1"}}},
            'status.capacity[pods]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        ("Lease", lease(leaseDurationSeconds=1, leaseTransitions=0, holderIdentity="x"), None),
        ("Lease", lease(), None),
        ("Lease", lease(leaseDurationSeconds=0), "spec.leaseDurationSeconds: Invalid value: 0: must be greater than"),
        ("Lease", lease(leaseTransitions=-1), "spec.leaseTransitions: Invalid value: -1: must be greater than or"),
        ("Lease", lease(holderIdentity=""), 'spec.holderIdentity: Invalid value: "": must not be empty'),
        ("Event", event("d", "d"), None),
        ("Event", event(None, "default"), None),
        ("Event", event("x", "d"), 'involvedObject.namespace: Invalid value: "x": does not match event.namespace'),
        ("Event", event(None, "d"), 'involvedObject.namespace: Invalid value: "": does not match'),
        ("ResourceQuota", quota({"pods": "2", "count/pods": 3, "requests.cpu": "1500m"}, "BestEffort"), None),
        ("ResourceQuota", quota({"pods": "1.5"}), 'spec.hard[pods]: Invalid value: "1.5": must be an integer'),
        ("ResourceQuota", quota({"pods": "-1"}), 'spec.hard[pods]: Invalid value: "-1": must be greater than'),
        ("ResourceQuota", quota({"pods": "two"}), 'spec.hard[pods]: Invalid value: "two": quantities must'),
        ("ResourceQuota", quota({"a b": "1"}), 'spec.hard[a b]: Invalid value: "a b": name part'),
        ("ResourceQuota", quota({"pods": 1}, "Some"), 'spec.scopes: Invalid value: "Some": unsupported scope'),
        (
            "Namespace",
            {"metadata": {"name": "n"}, "spec": {"finalizers": ["hold"]}},
            'spec.finalizers: Invalid value: "hold": name is neither',
        ),
    ],
)
def test_other_kinds(kind: str, obj: Obj, message: str | None) -> None:
    errors = told(validate_create(kind, obj))
    assert len(errors) == (0 if message is None else 1)
    if message is not None:
        assert errors[0].startswith(message)


@pytest.mark.parametrize(
    ("deleted", "phase", "good"),
    [(False, "Active", True), (False, "Terminating", False), (True, "Terminating", True), (True, "Active", False)],
)
def test_a_namespace_phase(deleted: bool, phase: str, good: bool) -> None:
    meta: Obj = {"name": "n", **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})}
    before: Obj = {"metadata": meta, "status": {}}
    errors = validate_update("Namespace", {**before, "status": {"phase": phase}}, before)
    assert (errors == []) is good


def test_what_a_node_is_given_once() -> None:
    before: Obj = {"metadata": {"name": "n"}, "spec": {"providerID": "a"}}
    assert validate_update("Node", {**before, "spec": {"providerID": "a", "unschedulable": True}}, before) == []
    assert told(validate_update("Node", {**before, "spec": {"providerID": "b"}}, before)) == [
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'
    ]
