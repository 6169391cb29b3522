"""Deployments: defaults, rules, the generation, status, scale, tables, and what a delete takes along."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.api_harness import (
    DEPLOYMENTS,
    JSON_PATCH,
    MERGE,
    PODS,
    SETS,
    STRATEGIC,
    TABLE,
    Api,
    deployment,
    names,
    pod,
    replicaset,
)

Obj = dict[str, Any]
WEB = f"{DEPLOYMENTS}/web"
QUARTERS = {"maxUnavailable": "25%", "maxSurge": "25%"}


def rolling(unavailable: Any, surge: Any) -> Obj:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}}


def template(labels: Obj | None = None, **spec: Any) -> Obj:
    return {
        "metadata": {"labels": {"app": "web"} if labels is None else labels},
        "spec": {"containers": [{"name": "c", "image": "nginx"}], **spec},
    }


# -- defaults --------------------------------------------------------------------------------------------------------


def test_what_is_left_out_is_filled_in(api: Api) -> None:
    made = api.create(DEPLOYMENTS, deployment())
    spec = made["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": QUARTERS}
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert "paused" not in spec
    assert "minReadySeconds" not in spec
    assert (made["status"], made["metadata"]["generation"]) == ({}, 1)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param({"type": "Recreate"}, {"type": "Recreate"}, id="Recreate has no limits"),
        pytest.param({"type": ""}, {"type": "RollingUpdate", "rollingUpdate": QUARTERS}, id="no type"),
        pytest.param({"rollingUpdate": None}, {"type": "RollingUpdate", "rollingUpdate": QUARTERS}, id="no limits"),
        pytest.param(
            {"rollingUpdate": {"maxSurge": 0}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "25%"}},
            id="one of the limits",
        ),
        pytest.param(
            {"rollingUpdate": {"maxSurge": "200%", "maxUnavailable": "100%"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "200%", "maxUnavailable": "100%"}},
            id="a surge of more than all",
        ),
        pytest.param(
            {"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": "1%"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "0%", "maxUnavailable": "1%"}},
            id="a share that may round to nothing",
        ),
    ],
)
def test_strategies(api: Api, given: Obj, kept: Obj) -> None:
    assert api.create(DEPLOYMENTS, deployment(strategy=given))["spec"]["strategy"] == kept


def test_zeros_are_kept_where_they_mean_something(api: Api) -> None:
    zeros = {"replicas": 0, "revisionHistoryLimit": 0, "minReadySeconds": 0, "paused": False}
    spec = api.create(DEPLOYMENTS, deployment(**zeros))["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (0, 0)
    assert not {"minReadySeconds", "paused"} & spec.keys(), "upstream's types leave these out"


# -- rules -----------------------------------------------------------------------------------------------------------

NUMBERS = "spec.strategy.rollingUpdate"
MISMATCH = 'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'
PERCENT = "a valid percent string must be a numeric string followed by an ending '%'"
BOTH_ZERO = "may not be 0 when `maxSurge` is 0"
DEADLINE = "must be greater than minReadySeconds"
RECREATE_LIMITS = f"{NUMBERS}: Forbidden: may not be specified when strategy `type` is 'Recreate'"


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param({"replicas": -1}, ["spec.replicas: Invalid value: -1: must be greater than"], id="replicas"),
        pytest.param({"minReadySeconds": -1}, ["spec.minReadySeconds: Invalid value: -1"], id="minReadySeconds"),
        pytest.param({"revisionHistoryLimit": -1}, ["spec.revisionHistoryLimit: Invalid value: -1"], id="history"),
        pytest.param(
            {"progressDeadlineSeconds": -1},
            ["spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0", DEADLINE],
            id="a negative deadline",
        ),
        pytest.param({"progressDeadlineSeconds": 0}, [f"Invalid value: 0: {DEADLINE}"], id="no time at all"),
        pytest.param({"progressDeadlineSeconds": 5, "minReadySeconds": 5}, [f"Invalid value: 5: {DEADLINE}"]),
        pytest.param({"minReadySeconds": 600}, [f"spec.progressDeadlineSeconds: Invalid value: 600: {DEADLINE}"]),
        pytest.param({"selector": None}, ["spec.selector: Required value", MISMATCH], id="no selector"),
        pytest.param({"selector": {}}, ["{}: empty selector is invalid for deployment"], id="an empty selector"),
        pytest.param({"selector": {"matchLabels": {"app": "db"}}}, [MISMATCH], id="another selector"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}, "strategy": {"type": "Foo"}},
            [
                'spec.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator',
                "invalid label selector",
                "spec.strategy: Unsupported value",
            ],
            id="a bad selector, and the rest is looked at, too",
        ),
        pytest.param({"template": None}, [MISMATCH.replace('{"app":"web"}', "{}"), "spec.template.spec.containers"]),
        pytest.param(
            {"template": template(restartPolicy="OnFailure")},
            ['spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"'],
            id="restartPolicy",
        ),
        pytest.param(
            {"template": template(activeDeadlineSeconds=5)},
            ["template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"],
            id="activeDeadlineSeconds",
        ),
        pytest.param({"strategy": {"type": "Recreate", "rollingUpdate": {}}}, [RECREATE_LIMITS]),
        pytest.param(
            {"strategy": {"type": "OnDelete"}},
            ['spec.strategy: Unsupported value: {"type":"OnDelete"}: supported values: "Recreate", "RollingUpdate"'],
            id="another strategy",
        ),
        pytest.param(rolling(0, 0), [f"{NUMBERS}.maxUnavailable: Invalid value: 0: {BOTH_ZERO}"], id="both 0"),
        pytest.param(rolling("0%", 0), [f'{NUMBERS}.maxUnavailable: Invalid value: "0%": {BOTH_ZERO}'], id="both 0%"),
        pytest.param(
            rolling(-1, -1),
            [f"{NUMBERS}.maxUnavailable: Invalid value: -1", f"{NUMBERS}.maxSurge: Invalid value: -1"],
            id="both negative",
        ),
        pytest.param(rolling("5", 1), [f'{NUMBERS}.maxUnavailable: Invalid value: "5": {PERCENT}'], id="a text"),
        pytest.param(rolling(1, "5.5%"), [f'{NUMBERS}.maxSurge: Invalid value: "5.5%": {PERCENT}'], id="a fraction"),
        pytest.param(
            rolling("", ""),
            [f'{NUMBERS}.maxUnavailable: Invalid value: "": {PERCENT}', f"{NUMBERS}.maxSurge", BOTH_ZERO],
            id="empty texts",
        ),
        pytest.param(
            rolling("101%", 0),
            [f'{NUMBERS}.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
            id="more than all",
        ),
    ],
)
def test_what_may_not_be(api: Api, spec: Obj, messages: list[str]) -> None:
    """One cause for each message, in the real server's order."""
    code, status = api.call("POST", DEPLOYMENTS, deployment(**spec))
    assert (code, status["reason"]) == (422, "Invalid")
    causes = [f"{cause['field']}: {cause['message']}" for cause in status["details"]["causes"]]
    assert len(causes) == len(messages), causes
    for cause, message in zip(causes, messages, strict=True):
        assert message in cause


@pytest.mark.parametrize("spec", [rolling(1.5, 1), rolling(True, 1), {"replicas": "3"}, {"paused": "yes"}], ids=str)
def test_a_value_of_another_type(api: Api, spec: Obj) -> None:
    code, status = api.call("POST", DEPLOYMENTS, deployment(**spec))
    assert (code, "cannot be handled as a Deployment" in status["message"]) == (400, True)


def test_the_selector_is_immutable(api: Api) -> None:
    made = api.create(DEPLOYMENTS, deployment())
    made["spec"]["selector"] = {"matchLabels": {"app": "api"}}
    made["spec"]["template"]["metadata"]["labels"] = {"app": "api"}
    code, status = api.call("PUT", WEB, made)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "spec.selector")
    assert 'Invalid value: {"matchLabels":{"app":"api"}}: field is immutable' in status["message"]


# -- generation and patches ------------------------------------------------------------------------------------------


def test_spec_and_annotations_count_in_the_generation(api: Api) -> None:
    """Each write counts once; labels, finalizers, the status and what changes nothing do not count."""
    api.create(DEPLOYMENTS, deployment())
    writes: list[tuple[int, str, Obj]] = [
        (2, "", {"metadata": {"annotations": {"a": "1"}}}),
        (2, "", {"metadata": {"annotations": {"a": "1"}}}),
        (3, "", {"metadata": {"annotations": {"a": "2"}}, "spec": {"replicas": 2}}),
        (3, "", {"metadata": {"labels": {"a": "1"}, "finalizers": ["x.io/y"]}}),
        (3, "", {"spec": {"paused": False, "minReadySeconds": 0}}),
        (4, "", {"spec": {"paused": True}}),
        (5, "", {"spec": {"paused": None}}),
        (5, "", {"status": {"replicas": 9}}),
        (5, "/status", {"status": {"replicas": 1}, "metadata": {"annotations": {"a": "3"}}}),
        (6, "", {"metadata": {"annotations": None}}),
        (6, "", {"metadata": {"annotations": {}, "generation": 99}}),
        (7, "/scale", {"spec": {"replicas": 5}}),
    ]
    for expected, part, body in writes:
        api.patch(WEB + part, body)
        assert api.get(WEB)["metadata"]["generation"] == expected, body


def test_a_whole_object_sent_without_its_defaults_changes_nothing(api: Api) -> None:
    made = api.create(DEPLOYMENTS, deployment())
    assert api.put(WEB, deployment()) == made


TO_RECREATE = {"spec": {"strategy": {"type": "Recreate"}}}
RETAINING = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
REMOVING = {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        pytest.param(TO_RECREATE, MERGE, 422, id="a merge patch leaves the limits"),
        pytest.param(TO_RECREATE, STRATEGIC, 422, id="and so does a strategic one"),
        pytest.param(RETAINING, STRATEGIC, 200, id="as kubectl apply has it"),
        pytest.param(REMOVING, MERGE, 200, id="without them"),
    ],
)
def test_from_rolling_to_recreate(api: Api, body: Obj, content_type: str, code: int) -> None:
    api.create(DEPLOYMENTS, deployment())
    assert api.call("PATCH", WEB, body, content_type)[0] == code
    if code == 200:
        assert api.get(WEB)["spec"]["strategy"] == {"type": "Recreate"}
        back = api.patch(WEB, {"spec": {"strategy": {"type": "RollingUpdate"}}}, STRATEGIC)
        assert back["spec"]["strategy"]["rollingUpdate"] == QUARTERS


def test_patches_of_clients(api: Api) -> None:
    """set image, undo: of the template, only what is named changes; or all of it."""
    first = api.create(DEPLOYMENTS, deployment())["spec"]["template"]
    container = {"name": "c", "image": "nginx:2"}
    image = {"spec": {"$setElementOrder/containers": [{"name": "c"}], "containers": [container]}}
    changed = api.patch(WEB, {"spec": {"template": image}}, STRATEGIC)["spec"]["template"]["spec"]["containers"]
    assert [(each["image"], each["terminationMessagePath"]) for each in changed] == [
        ("nginx:2", "/dev/termination-log")
    ]
    undo = [
        {"op": "replace", "path": "/spec/template", "value": first},
        {"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}},
    ]
    back = api.patch(WEB, undo, JSON_PATCH)
    assert (back["spec"]["template"], back["metadata"]["annotations"]) == (first, {"a": "b"})
    assert back["metadata"]["generation"] == 3


ROLLBACK = "deprecated.deployment.rollback.to"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        pytest.param("x", 400, f"failed to parse annotation[{ROLLBACK}]=x as int64", id="no number"),
        pytest.param("9" * 30, 400, "as int64", id="too long a number"),
        pytest.param("-1", 422, "spec.rollback.version: Invalid value: -1: must be greater than or equal to 0"),
    ],
)
def test_a_rollback_that_cannot_be(api: Api, text: str, code: int, message: str) -> None:
    api.create(DEPLOYMENTS, deployment())
    got, answer = api.call("PATCH", WEB, {"metadata": {"annotations": {ROLLBACK: text}}}, MERGE)
    assert (got, message in answer["message"]) == (code, True), answer["message"]


def test_a_rollback_is_asked_for_and_is_no_matter_of_the_status(api: Api) -> None:
    """It counts in the generation, as a field of the spec in disguise; an empty one is none."""
    api.create(DEPLOYMENTS, deployment())

    def written(part: str, text: str | None) -> tuple[str | None, int]:
        meta = api.patch(WEB + part, {"metadata": {"annotations": {ROLLBACK: text}}})["metadata"]
        return (meta.get("annotations") or {}).get(ROLLBACK), meta["generation"]

    assert written("", "") == (None, 1)
    assert written("", "3") == ("3", 2)
    assert written("/status", "4") == ("3", 2)
    assert written("/status", None) == ("3", 2)
    assert written("", None) == (None, 3)
    assert written("/status", "4") == (None, 3)


# -- status ----------------------------------------------------------------------------------------------------------


def condition(kind: str, status: str = "True") -> Obj:
    moment = "2024-01-01T00:00:00Z"
    return {"type": kind, "status": status, "lastUpdateTime": moment, "lastTransitionTime": moment}


STATUS = {
    "observedGeneration": 1,
    "replicas": 4,
    "updatedReplicas": 3,
    "readyReplicas": 3,
    "availableReplicas": 2,
    "unavailableReplicas": 2,
    "terminatingReplicas": 1,
    "collisionCount": 2,
    "conditions": [condition("Progressing")],
}


def test_status_brings_annotations_and_neither_spec_nor_labels(api: Api) -> None:
    """The controller keeps the revision in an annotation, and writes it with the status."""
    api.create(DEPLOYMENTS, {**deployment(), "metadata": {"name": "web", "labels": {"a": "1"}}, "status": STATUS})
    assert api.get(WEB)["status"] == {}
    meta = {"labels": {"a": "2"}, "annotations": {"deployment.kubernetes.io/revision": "1"}}
    written = api.patch(f"{WEB}/status", {"status": STATUS, "spec": {"replicas": 9}, "metadata": meta})
    assert (written["status"], written["spec"]["replicas"]) == (STATUS, 1)
    assert (written["metadata"]["labels"], written["metadata"]["annotations"]) == ({"a": "1"}, meta["annotations"])
    assert written["metadata"]["generation"] == 1
    assert api.patch(WEB, {"status": {"replicas": 9}})["status"] == STATUS


def test_status_needs_the_version_it_was_computed_from(api: Api) -> None:
    made = api.create(DEPLOYMENTS, deployment())
    api.patch(WEB, {"spec": {"replicas": 5}})
    assert api.call("PUT", f"{WEB}/status", {**made, "status": {"replicas": 1}})[0] == 409
    rv = made["metadata"]["resourceVersion"]
    assert api.call("PATCH", f"{WEB}/status", {"metadata": {"resourceVersion": rv}}, MERGE)[0] == 409


def test_conditions_merge_by_type(api: Api) -> None:
    api.create(DEPLOYMENTS, deployment())
    for kind in ("Available", "Progressing"):
        api.patch(f"{WEB}/status", {"status": {"conditions": [condition(kind)]}}, STRATEGIC)
    kinds = [each["type"] for each in api.get(f"{WEB}/status")["status"]["conditions"]]
    assert sorted(kinds) == ["Available", "Progressing"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        pytest.param({"unavailableReplicas": -1}, "status.unavailableReplicas: Invalid value: -1", id="negative"),
        pytest.param({"terminatingReplicas": -1}, "status.terminatingReplicas: Invalid value: -1", id="terminating"),
        pytest.param({"updatedReplicas": 5}, "updatedReplicas: Invalid value: 5: cannot be greater than status.repl"),
        pytest.param({"readyReplicas": 5}, "readyReplicas: Invalid value: 5: cannot be greater than status.replicas"),
        pytest.param({"availableReplicas": 4}, "Invalid value: 4: cannot be greater than readyReplicas"),
        pytest.param({"collisionCount": 1}, "status.collisionCount: Invalid value: 1: cannot be decremented"),
        pytest.param({"collisionCount": None}, "status.collisionCount: Invalid value: 0: cannot be decremented"),
    ],
)
def test_a_status_that_cannot_be(api: Api, status: Obj, message: str) -> None:
    api.create(DEPLOYMENTS, deployment())
    api.patch(f"{WEB}/status", {"status": STATUS})
    code, answer = api.call("PATCH", f"{WEB}/status", {"status": status}, MERGE)
    assert (code, message in answer["message"]) == (422, True), answer["message"]


# -- scale, tables, discovery ----------------------------------------------------------------------------------------


def test_scale_shows_and_sets_replicas(api: Api) -> None:
    made = api.create(DEPLOYMENTS, deployment(replicas=3))
    api.patch(f"{WEB}/status", {"status": {"replicas": 2}})
    scale = api.get(f"{WEB}/scale")
    assert (scale["kind"], scale["apiVersion"], scale["metadata"]["uid"]) == (
        *("Scale", "autoscaling/v1"),
        made["metadata"]["uid"],
    )
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "app=web"})
    scale["spec"]["replicas"] = 0
    assert api.put(f"{WEB}/scale", scale)["spec"] == {"replicas": 0}
    assert api.call("PUT", f"{WEB}/scale", scale)[0] == 409, "an old version"
    assert api.patch(f"{WEB}/scale", {"spec": {"replicas": 7}})["spec"] == {"replicas": 7}
    whole = api.get(WEB)
    assert (whole["spec"]["replicas"], whole["spec"]["template"]) == (7, made["spec"]["template"])


def test_table(api: Api) -> None:
    api.create(DEPLOYMENTS, deployment(replicas=5))
    api.patch(f"{WEB}/status", {"status": STATUS})
    api.create(DEPLOYMENTS, deployment("idle"))
    code, body = api.raw("GET", DEPLOYMENTS, headers={"Accept": TABLE})
    assert code == 200
    table = json.loads(body)
    shown, wide = ("Name", "Ready", "Up-to-date", "Available", "Age"), ("Containers", "Images", "Selector")
    assert [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]] == [
        *((name, "string", 0) for name in shown),
        *((name, "string", 1) for name in wide),
    ]
    assert [row["cells"] for row in table["rows"]] == [
        ["idle", "0/1", 0, 0, "0s", "c", "nginx", "app=idle"],
        ["web", "3/5", 3, 2, "0s", "c", "nginx", "app=web"],
    ]


def test_discovery(api: Api) -> None:
    resources = {r["name"]: r for r in api.get("/apis/apps/v1")["resources"]}
    assert (resources["deployments"]["shortNames"], resources["deployments"]["categories"]) == (["deploy"], ["all"])
    assert resources["deployments/scale"]["verbs"] == resources["deployments/status"]["verbs"]
    assert resources["deployments/scale"]["kind"] == "Scale"
    assert api.call("POST", f"{WEB}/rollback", {})[0] == 404, "of the extensions API only"


# -- deletion --------------------------------------------------------------------------------------------------------


def owned(child: Obj, kind: str, owner: Obj) -> Obj:
    flags = {"controller": True, "blockOwnerDeletion": True}
    meta = {"apiVersion": "apps/v1", "kind": kind, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return {**child, "metadata": {**child["metadata"], "ownerReferences": [{**meta, **flags}]}}


def family(api: Api) -> None:
    """A Deployment, two ReplicaSets of its, a pod of each."""
    top = api.create(DEPLOYMENTS, deployment())
    for name in ("web-1", "web-2"):
        middle = api.create(SETS, owned(replicaset(name), "Deployment", top))
        api.create(PODS, owned(pod(f"{name}-a", {"app": name}), "ReplicaSet", middle))


@pytest.mark.parametrize("policy", [None, "Background", "Foreground"])
def test_a_delete_takes_replicasets_and_pods_along(api: Api, policy: str | None) -> None:
    """In the foreground the Deployment goes last, and its ReplicaSets after their pods."""
    family(api)
    gone: list[str] = []
    watches = [
        api.watch(path, resourceVersion=api.get(path)["metadata"]["resourceVersion"])
        for path in (PODS, SETS, DEPLOYMENTS)
    ]
    api.delete(WEB, propagationPolicy=policy) if policy else api.delete(WEB)
    for watch, count in zip(watches, (2, 2, 1), strict=True):
        removed = [watch.until("DELETED")["object"] for _ in range(count)]
        gone += [f"{int(each['metadata']['resourceVersion']):09} {each['kind']}" for each in removed]
    kinds = [each.split()[1] for each in sorted(gone)]
    assert (kinds[-1] if policy == "Foreground" else kinds[0]) == "Deployment"
    assert sorted(kinds) == ["Deployment", "Pod", "Pod", "ReplicaSet", "ReplicaSet"]


def test_a_delete_may_leave_everything(api: Api) -> None:
    """The ReplicaSets lose their owner; their pods keep theirs."""
    family(api)
    watch = api.watch(DEPLOYMENTS, resourceVersion=api.get(DEPLOYMENTS)["metadata"]["resourceVersion"])
    api.delete(WEB, propagationPolicy="Orphan")
    watch.until("DELETED")
    sets, pods = api.get(SETS), api.get(PODS)
    assert (names(sets), names(pods)) == (["web-1", "web-2"], ["web-1-a", "web-2-a"])
    assert not any("ownerReferences" in each["metadata"] for each in sets["items"])
    assert all(each["metadata"]["ownerReferences"] for each in pods["items"])
