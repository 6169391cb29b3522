"""Rules of pods and of their templates, one line each."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
import yaml

from oarlock.sandbox.apiserver import defaulting
from oarlock.sandbox.apiserver.defaulting.templates import default_template
from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.shapes import check_shape
from oarlock.sandbox.apiserver.validation import validate_create, validate_update
from oarlock.sandbox.apiserver.validation.replica_sets import template_errors
from tests import ROOT

Obj = dict[str, Any]

COST = "controller.kubernetes.io/pod-deletion-cost"


def container(**fields: Any) -> Obj:
    return {"name": "c", "image": "img:1", **fields}


def pod(*containers: Obj, annotations: Obj | None = None, **spec: Any) -> Obj:
    return defaulting.apply(
        "Pod",
        {
            "metadata": {"name": "p", "namespace": "default", "annotations": annotations or {}},
            "spec": {"containers": list(containers) or [container()], **spec},
        },
    )


def told(errors: list[Any]) -> list[str]:
    return [str(error) for error in errors]


def affinity(*terms: Obj) -> Obj:
    chosen = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": chosen}}


def expression(**fields: Any) -> Obj:
    return affinity({"matchExpressions": [fields]})


def a_field(**fields: Any) -> Obj:
    return affinity({"matchFields": [fields]})


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
EXPRESSION_OF_NOTHING: Obj = {"matchExpressions": [{"key": "a", "operator": "In"}]}
BAD_SELECTOR: Obj = {"matchLabels": {"a b": "c"}}
TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def test_a_good_pod() -> None:
    good = pod(
        container(
            ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 80, "protocol": "UDP", "hostPort": 80}],
            env=[{"name": "A.b-c", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
            volumeMounts=[{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/w"}],
            resources={"requests": {"cpu": "0.5", "memory": "1Gi"}, "limits": {"cpu": 1, "nvidia.com/gpu": "1"}},
        ),
        container(name="d"),
        initContainers=[container(name="i", restartPolicy="Always")],
        volumes=[{"name": "v"}, {"name": "w", "hostPath": {"path": "/"}}],
        affinity=expression(key="a.b/c", operator="Gt", values=["3"]),
        tolerations=[{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}],
        nodeSelector={"a": "b"},
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        ],
        activeDeadlineSeconds=1,
        annotations={COST: "-5"},
    )
    assert told(validate_create("Pod", good)) == []


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        pytest.param(container(name=""), "containers[0].name: Required value", id="no name"),
        pytest.param(container(name="A"), 'containers[0].name: Invalid value: "A": a lowercase', id="name"),
        pytest.param(container(image=""), "containers[0].image: Required value", id="no image"),
        pytest.param(
            container(image=" a"), 'containers[0].image: Invalid value: " a": must not have leading', id="blank"
        ),
        pytest.param(
            container(imagePullPolicy="Often"),
            'containers[0].imagePullPolicy: Unsupported value: "Often": supported values: "Always", '
            '"IfNotPresent", "Never"',
            id="pull policy",
        ),
        pytest.param(
            container(terminationMessagePolicy="x"),
            'containers[0].terminationMessagePolicy: Unsupported value: "x": supported values: '
            '"FallbackToLogsOnError", "File"',
            id="message policy",
        ),
        pytest.param(
            container(restartPolicy="Always"),
            "containers[0].restartPolicy: Forbidden: may not be set for non-init containers",
            id="a sidecar among containers",
        ),
        pytest.param(container(ports=[{}]), "containers[0].ports[0].containerPort: Required value", id="no port"),
        pytest.param(
            container(ports=[{"containerPort": 65536}]),
            "containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
            id="port range",
        ),
        pytest.param(
            container(ports=[{"containerPort": 1, "hostPort": -1}]),
            "containers[0].ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
            id="host port range",
        ),
        pytest.param(
            container(ports=[{"containerPort": 1, "protocol": "tcp"}]),
            'containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"',
            id="protocol",
        ),
        pytest.param(
            container(ports=[{"containerPort": 1, "name": "80"}]),
            'containers[0].ports[0].name: Invalid value: "80": must contain at least one letter (a-z)',
            id="port name",
        ),
        pytest.param(
            container(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
            'containers[0].ports[1].name: Duplicate value: "a"',
            id="port name twice",
        ),
        pytest.param(
            container(ports=[{"containerPort": 1, "hostPort": 1}, {"containerPort": 2, "hostPort": 1}]),
            'containers[0].ports[1].hostPort: Duplicate value: "TCP//1"',
            id="host port twice",
        ),
        pytest.param(container(env=[{"value": "x"}]), "containers[0].env[0].name: Required value", id="env name"),
        pytest.param(
            container(env=[{"name": "a=b"}]), 'containers[0].env[0].name: Invalid value: "a=b"', id="env syntax"
        ),
        pytest.param(
            container(env=[{"name": "a", "valueFrom": {}}]),
            'containers[0].env[0].valueFrom: Invalid value: "": must specify one of',
            id="env from nowhere",
        ),
        pytest.param(
            container(env=[{"name": "a", "value": "x", "valueFrom": {"fieldRef": {}}}]),
            'containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
            id="env value twice",
        ),
        pytest.param(
            container(env=[{"name": "a", "valueFrom": {"fieldRef": {}, "secretKeyRef": {}}}]),
            'containers[0].env[0].valueFrom: Invalid value: "": may not have more than one field specified',
            id="env from two",
        ),
        pytest.param(
            container(volumeMounts=[{"name": "x", "mountPath": "/x"}]),
            'containers[0].volumeMounts[0].name: Not found: "x"',
            id="mount of no volume",
        ),
        pytest.param(
            container(volumeMounts=[{"mountPath": "/x"}]),
            "containers[0].volumeMounts[0].name: Required value",
            id="mount without name",
        ),
        pytest.param(
            container(volumeMounts=[{"name": "v"}]),
            "containers[0].volumeMounts[0].mountPath: Required value",
            id="mount without path",
        ),
        pytest.param(
            container(volumeMounts=[{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}]),
            'containers[0].volumeMounts[1].mountPath: Invalid value: "/v": must be unique',
            id="mount path twice",
        ),
        pytest.param(
            container(resources={"requests": {"cpu": "lots"}}),
            'containers[0].resources.requests[cpu]: Invalid value: "lots": quantities must match',
            id="quantity",
        ),
        pytest.param(
            container(resources={"limits": {"cpu": "-1"}, "requests": {"cpu": "-1"}}),
            'containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            id="negative quantity",
        ),
        pytest.param(
            container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}),
            'containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1500m',
            id="request above limit",
        ),
    ],
)
def test_a_container(bad: Obj, message: str) -> None:
    errors = told(validate_create("Pod", pod(bad, volumes=[{"name": "v"}])))
    assert errors
    assert errors[0].startswith("spec." + message)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"containers": []}, "containers: Required value", id="no container"),
        pytest.param(
            {"containers": [container(), container()]},
            'containers[1].name: Duplicate value: "c"',
            id="name twice",
        ),
        pytest.param(
            {"initContainers": [container()]},
            'initContainers[0].name: Duplicate value: "c"',
            id="name twice over both lists",
        ),
        pytest.param(
            {"initContainers": [container(name="i", restartPolicy="Never")]},
            'initContainers[0].restartPolicy: Unsupported value: "Never": supported values: "Always"',
            id="init container policy",
        ),
        pytest.param({"volumes": [{"name": ""}]}, "volumes[0].name: Required value", id="volume name"),
        pytest.param(
            {"volumes": [{"name": "a"}, {"name": "a"}]},
            'volumes[1].name: Duplicate value: "a"',
            id="volume twice",
        ),
        pytest.param(
            {"volumes": [{"name": "a", "secret": {}, "emptyDir": {}}]},
            "volumes[0].emptyDir: Forbidden: may not specify more than 1 volume type",
            id="two sources",
        ),
        pytest.param(
            {"restartPolicy": "Sometimes"},
            'restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
            id="restart policy",
        ),
        pytest.param({"dnsPolicy": "x"}, 'dnsPolicy: Unsupported value: "x"', id="dns policy"),
        pytest.param(
            {"activeDeadlineSeconds": 0},
            "activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            id="deadline",
        ),
        pytest.param({"nodeName": "A"}, 'nodeName: Invalid value: "A"', id="node name"),
        pytest.param({"serviceAccountName": "A"}, 'serviceAccountName: Invalid value: "A"', id="account"),
        pytest.param({"hostname": "a.b"}, 'hostname: Invalid value: "a.b"', id="hostname"),
        pytest.param({"nodeSelector": {"a b": "c"}}, 'nodeSelector: Invalid value: "a b"', id="node selector"),
        pytest.param(
            {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
            'schedulingGates[1]: Duplicate value: "a"',
            id="gate twice",
        ),
        pytest.param(
            {"hostNetwork": True, "containers": [container(ports=[{"containerPort": 1, "hostPort": 2}])]},
            "containers[0].ports[0].containerPort: Invalid value: 1: must match `hostPort` when `hostNetwork`",
            id="host network ports",
        ),
        pytest.param(
            {"affinity": affinity()},
            f"{TERMS[5:]}: Required value: must have at least one node selector term",
            id="no terms",
        ),
        pytest.param(
            {"affinity": expression(key="a", operator="In")},
            f"{TERMS[5:]}[0].matchExpressions[0].values: Required value: must be specified when `operator` is",
            id="In without values",
        ),
        pytest.param(
            {"affinity": expression(key="a", operator="Exists", values=["x"])},
            f"{TERMS[5:]}[0].matchExpressions[0].values: Forbidden: may not be specified when `operator` is",
            id="Exists with values",
        ),
        pytest.param(
            {"affinity": expression(key="a", operator="Gt", values=["1", "2"])},
            f"{TERMS[5:]}[0].matchExpressions[0].values: Required value: must be specified single value",
            id="Gt with two",
        ),
        pytest.param(
            {"affinity": expression(key="a", operator="Like")},
            f'{TERMS[5:]}[0].matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator',
            id="operator",
        ),
        pytest.param(
            {"affinity": expression(operator="Exists")},
            f'{TERMS[5:]}[0].matchExpressions[0].key: Invalid value: "": name part must be non-empty',
            id="no key",
        ),
        pytest.param(
            {"affinity": a_field(key="metadata.uid", operator="In", values=["x"])},
            f'{TERMS[5:]}[0].matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key',
            id="field key",
        ),
        pytest.param(
            {"affinity": a_field(key="metadata.name", operator="In", values=["x", "y"])},
            f"{TERMS[5:]}[0].matchFields[0].values: Required value: must be only one value",
            id="field values",
        ),
        pytest.param(
            {"affinity": a_field(key="metadata.name", operator="Exists")},
            f'{TERMS[5:]}[0].matchFields[0].operator: Invalid value: "Exists": not a valid selector operator',
            id="field operator",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 101, "preference": {}}]}}},
            f"affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100",
            id="weight",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": EXPRESSION_OF_NOTHING}]}}},
            f"affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0].values: Required value",
            id="preference",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": ""}]}}},
            f"affinity.podAffinity.{REQUIRED}[0].topologyKey: Required value",
            id="pod affinity without topology",
        ),
        pytest.param(
            {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "a", "labelSelector": BAD_SELECTOR}]}}},
            f'affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchLabels: Invalid value: "a b"',
            id="pod affinity selector",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "a b"}}]}}},
            f'affinity.podAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey: Invalid value: "a b"',
            id="preferred pod affinity",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "a",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": BAD_SELECTOR,
                    }
                ]
            },
            'topologySpreadConstraints[0].labelSelector.matchLabels: Invalid value: "a b"',
            id="spread selector",
        ),
        pytest.param(
            {"tolerations": [{"value": "x"}]},
            'tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty',
            id="toleration without key",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
            "tolerations[0].operator: Invalid value: {",
            id="Exists with a value",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists", "effect": "Never"}]},
            'tolerations[0].effect: Unsupported value: "Never"',
            id="toleration effect",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Like"}]},
            'tolerations[0].operator: Unsupported value: "Like": supported values: "Equal", "Exists"',
            id="toleration operator",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 1}]},
            "tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds`",
            id="seconds without NoExecute",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]},
            "topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
            id="spread skew",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "x"}]},
            'topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "x"',
            id="spread action",
        ),
    ],
)
def test_a_spec(spec: Obj, message: str) -> None:
    bad = defaulting.apply(
        "Pod", {"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": [container()], **spec}}
    )
    errors = told(validate_create("Pod", bad))
    assert errors
    assert errors[0].startswith("spec." + message)


@pytest.mark.parametrize("cost", ["0", "5", "-5", "-0", "-05", "2147483647", "-2147483648"])
def test_a_deletion_cost(cost: str) -> None:
    assert validate_create("Pod", pod(annotations={COST: cost})) == []


@pytest.mark.parametrize("cost", ["", "+5", "008", " 1", "1.5", "2147483648", "-2147483649", "x", "٣", "1_0", "-"])
def test_no_deletion_cost(cost: str) -> None:
    message = f'metadata.annotations[{COST}]: Invalid value: "{cost}": must be a 32bit integer'
    assert told(validate_create("Pod", pod(annotations={COST: cost}))) == [message]
    assert told(validate_update("Pod", pod(annotations={COST: cost}), pod())) == [message]


GRACE = "terminationGracePeriodSeconds"
IMMUTABLE = "spec: Forbidden: pod updates may not change fields other than"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({}, {"containers": [container(image="img:2")]}, id="an image"),
        pytest.param({}, {"activeDeadlineSeconds": 5}, id="a deadline"),
        pytest.param({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 4}, id="a nearer deadline"),
        pytest.param(
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 5, "containers": [container(image="img:2")]},
            id="the same deadline",
        ),
        pytest.param({}, {"tolerations": [{"key": "a", "operator": "Exists"}]}, id="a toleration more"),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}]},
            {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}]},
            id="seconds of a toleration",
        ),
        pytest.param({GRACE: -5}, {GRACE: 1}, id="a negative grace becomes 1"),
        pytest.param({"schedulingGates": [{"name": "a"}]}, {}, id="a gate less"),
    ],
)
def test_an_allowed_update(old: Obj, new: Obj) -> None:
    before, after = pod(**old), pod(**{**old, **new} if "schedulingGates" not in old else new)
    assert told(validate_update("Pod", after, before)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param({}, {"nodeName": "n"}, IMMUTABLE, id="the node, which only a binding gives"),
        pytest.param({"nodeName": "n"}, {"nodeName": "m"}, IMMUTABLE, id="another node"),
        pytest.param({}, {"restartPolicy": "Never"}, IMMUTABLE, id="restart policy"),
        pytest.param({}, {"containers": [container(env=[{"name": "A"}])]}, IMMUTABLE, id="a variable"),
        pytest.param({}, {GRACE: 5}, IMMUTABLE, id="grace"),
        pytest.param({}, {GRACE: 1}, IMMUTABLE, id="grace to 1 that was not negative"),
        pytest.param({GRACE: 0}, {GRACE: 1}, IMMUTABLE, id="grace to 1 that was 0"),
        pytest.param({GRACE: -5}, {GRACE: 2}, IMMUTABLE, id="a negative grace to anything else"),
        pytest.param(
            {},
            {"containers": [container(), container(name="d")]},
            "spec.containers: Forbidden: pod updates may not add or remove containers",
            id="a container more",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 6},
            "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value",
            id="a later deadline",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": None},
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil",
            id="no deadline any more",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists"}]},
            {"tolerations": []},
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
            id="a toleration less",
        ),
        pytest.param(
            {},
            {"schedulingGates": [{"name": "a"}]},
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'",
            id="a gate more",
        ),
        pytest.param({}, {"containers": [container(image="")]}, "spec.containers[0].image: Required", id="bad"),
    ],
)
def test_a_refused_update(old: Obj, new: Obj, message: str) -> None:
    errors = told(validate_update("Pod", pod(**{**old, **new}), pod(**old)))
    assert errors
    assert errors[0].startswith(message)


def test_a_status_write_does_not_look_at_the_spec() -> None:
    before = pod()
    after = {**before, "status": {"phase": "Running"}}
    assert validate_update("Pod", after, before) == []


def test_memoised_specs_do_not_hide_a_bad_one() -> None:
    good, bad = pod(), pod(container(name="A"))
    for _ in range(2):
        assert validate_create("Pod", good) == []
        assert len(validate_create("Pod", bad)) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"spec": []},
        {"spec": {"containers": {}}},
        {"spec": {"containers": [{"name": 5}]}},
        {"spec": {"containers": ["c"]}},
        {"spec": {"containers": [{"ports": [{"containerPort": "80"}]}]}},
        {"spec": {"terminationGracePeriodSeconds": "soon"}},
        {"spec": {"nodeSelector": {"a": 1}}},
        {"spec": {"volumes": ["v"]}},
        {"spec": {"containers": [{"env": [{"name": "A", "valueFrom": []}]}]}},
        {"metadata": {"name": "p", "labels": {"a": True}}},
        {"metadata": {"name": "p", "labels": ["a"]}},
        {"metadata": {"name": "p", "ownerReferences": {}}},
        {"metadata": {"name": "p", "ownerReferences": [{"controller": "true"}]}},
        {"status": {"phase": 1}},
    ],
)
def test_a_value_of_another_type_is_a_bad_request(wrong: Obj) -> None:
    body = {"apiVersion": "v1", "metadata": {"name": "p"}, **copy.deepcopy(wrong)}
    with pytest.raises(ApiError) as refusal:
        check_shape("Pod", body)
    assert refusal.value.code == 400
    assert refusal.value.message.startswith('Pod in version "v1" cannot be handled as a Pod: ')


MANIFESTS = ROOT.parent / "shared" / "manifests"


@pytest.mark.skipif(not MANIFESTS.is_dir(), reason="no manifests of real projects at hand")
def test_the_templates_of_real_projects_pass() -> None:
    """Every pod template found in manifests that people run has to be accepted as it is."""
    seen = 0
    for path in sorted(MANIFESTS.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            template = ((document or {}).get("spec") or {}).get("template")
            if not template or "spec" not in template:
                continue
            body = {"metadata": {"name": "p", "namespace": "d"}, **orjson.loads(orjson.dumps(template))}
            body["metadata"] = {**body["metadata"], "name": "p", "namespace": "d"}
            check_shape("Pod", body)
            assert told(template_errors(default_template(body), "t")) == [], path.name
            assert told(validate_create("Pod", defaulting.apply("Pod", body))) == [], path.name
            seen += 1
    assert seen > 20
