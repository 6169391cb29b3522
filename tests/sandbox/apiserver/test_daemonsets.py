"""DaemonSets: defaults, rules, the two generations, status, tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.api_harness import DAEMONSETS, JSON_PATCH, MERGE, STRATEGIC, TABLE, Api, daemonset

Obj = dict[str, Any]
AGENT = f"{DAEMONSETS}/agent"
ANNOTATION = "deprecated.daemonset.template.generation"


def generations(obj: Obj) -> tuple[int, str]:
    """metadata.generation, and the number of the template as clients see it."""
    return obj["metadata"]["generation"], obj["metadata"]["annotations"][ANNOTATION]


def rolling(unavailable: int | str, surge: int | str) -> Obj:
    return {"updateStrategy": {"rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}}


def test_what_is_left_out_is_filled_in(api: Api) -> None:
    made = api.create(DAEMONSETS, daemonset())
    spec = made["spec"]
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    assert (spec["revisionHistoryLimit"], "minReadySeconds" in spec) == (10, False)
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert made["status"] == {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }


def test_on_delete_has_no_numbers(api: Api) -> None:
    made = api.create(DAEMONSETS, daemonset(updateStrategy={"type": "OnDelete"}))
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_what_is_given_is_kept(api: Api) -> None:
    made = api.create(DAEMONSETS, daemonset(**rolling("10%", 0), revisionHistoryLimit=0, minReadySeconds=5))
    assert made["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "10%", "maxSurge": 0}
    assert (made["spec"]["revisionHistoryLimit"], made["spec"]["minReadySeconds"]) == (0, 5)
    surging = api.create(DAEMONSETS, daemonset("surging", **rolling(0, "100%")))
    assert surging["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": "100%"}


def template(labels: Obj | None = None, **spec: Any) -> Obj:
    return {
        "metadata": {"labels": {"app": "agent"} if labels is None else labels},
        "spec": {"containers": [{"name": "c", "image": "nginx"}], **spec},
    }


NUMBERS = "spec.updateStrategy.rollingUpdate"
MISMATCH = "`selector` does not match template `labels`"
PERCENT = "a valid percent string must be a numeric string followed by an ending '%'"


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param({"selector": None}, [MISMATCH], id="no selector"),
        pytest.param({"selector": {}}, ["empty selector is invalid for daemonset"], id="an empty selector"),
        pytest.param({"selector": {"matchLabels": {"app": "db"}}}, [MISMATCH], id="another selector"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}},
            ['spec.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator'],
            id="a bad selector",
        ),
        pytest.param(rolling(0, 0), [f"{NUMBERS}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]),
        pytest.param(rolling("0%", "0%"), [f"{NUMBERS}.maxUnavailable: Required value"], id="both 0%"),
        pytest.param(
            rolling(1, 1), [f"{NUMBERS}.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"]
        ),
        pytest.param(rolling("10%", "5%"), ["may not be set when maxUnavailable is non-zero"], id="both shares"),
        pytest.param(rolling(-1, 0), [f"{NUMBERS}.maxUnavailable: Invalid value: -1: must be greater than"]),
        pytest.param(rolling(0, -1), [f"{NUMBERS}.maxSurge: Invalid value: -1: must be greater than"]),
        pytest.param(rolling("5", 0), [f'{NUMBERS}.maxUnavailable: Invalid value: "5": {PERCENT}'], id="a text"),
        pytest.param(rolling("-5%", 0), [PERCENT], id="a negative share"),
        pytest.param(
            rolling("101%", 0),
            [f'{NUMBERS}.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
            id="more than all",
        ),
        pytest.param(rolling(0, "101%"), [f"{NUMBERS}.maxSurge", "must not be greater than 100%"], id="surge over all"),
        pytest.param(
            {"updateStrategy": {"type": "Recreate"}},
            ['spec.updateStrategy: Unsupported value: {"type":"Recreate"}: supported values: "RollingUpdate", "OnD'],
            id="another strategy",
        ),
        pytest.param({"minReadySeconds": -1}, ["spec.minReadySeconds: Invalid value: -1"], id="minReadySeconds"),
        pytest.param({"revisionHistoryLimit": -1}, ["spec.revisionHistoryLimit: Invalid value: -1"], id="history"),
        pytest.param(
            {"template": template(restartPolicy="Never")},
            ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
            id="restartPolicy",
        ),
        pytest.param(
            {"template": template(activeDeadlineSeconds=5)},
            ["template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported"],
            id="activeDeadlineSeconds",
        ),
        pytest.param(
            {"template": template(containers=[])}, ["spec.template.spec.containers: Required value"], id="no container"
        ),
    ],
)
def test_what_may_not_be(api: Api, spec: Obj, messages: list[str]) -> None:
    code, status = api.call("POST", DAEMONSETS, daemonset(**spec))
    assert (code, status["reason"]) == (422, "Invalid")
    for message in messages:
        assert message in status["message"]


@pytest.mark.parametrize("value", [1.5, True, [1], {"a": 1}])
def test_a_limit_of_another_type(api: Api, value: Any) -> None:
    code, status = api.call("POST", DAEMONSETS, daemonset(**rolling(value, 0)))
    assert code == 400
    assert "DaemonSet" in status["message"]


def test_the_selector_is_immutable(api: Api) -> None:
    made = api.create(DAEMONSETS, daemonset())
    made["spec"]["selector"] = {"matchLabels": {"app": "api"}}
    made["spec"]["template"]["metadata"]["labels"] = {"app": "api"}
    code, status = api.call("PUT", AGENT, made)
    assert code == 422
    assert "spec.selector" in status["message"]
    assert "field is immutable" in status["message"]


def test_both_generations(api: Api) -> None:
    """The spec counts in one, its template in both, everything else in none."""
    assert generations(api.create(DAEMONSETS, daemonset())) == (1, "1")
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]
    assert generations(api.patch(AGENT, image, JSON_PATCH)) == (2, "2")
    assert generations(api.patch(AGENT, {"spec": {"minReadySeconds": 3}})) == (3, "2")
    assert generations(api.patch(AGENT, {"metadata": {"labels": {"a": "b"}}})) == (3, "2")
    assert generations(api.patch(f"{AGENT}/status", {"status": {"numberReady": 1}})) == (3, "2")
    both = {"spec": {"minReadySeconds": 4, "template": {"metadata": {"labels": {"more": "x"}}}}}
    assert generations(api.patch(AGENT, both)) == (4, "3")


def test_a_template_sent_without_its_defaults_is_the_same_template(api: Api) -> None:
    api.create(DAEMONSETS, daemonset())
    assert generations(api.put(AGENT, daemonset())) == (1, "1")


def revision_of(template: Obj) -> Obj:
    """What a revision of `template` holds, as upstream writes it: a patch, with nulls where Go has empty times."""
    meta = {"creationTimestamp": None, **template["metadata"]}
    return {"spec": {"template": {"$patch": "replace", "metadata": meta, "spec": template["spec"]}}}


def test_a_revision_is_a_patch_that_restores_its_template(api: Api) -> None:
    first = api.create(DAEMONSETS, daemonset())["spec"]["template"]
    more = {"metadata": {"annotations": {"a": "b"}}, "spec": {"containers": [{"name": "side", "image": "s"}]}}
    second = api.patch(AGENT, {"spec": {"template": more}}, STRATEGIC)
    assert [c["name"] for c in second["spec"]["template"]["spec"]["containers"]] == ["side", "c"]
    back = api.patch(AGENT, revision_of(first), STRATEGIC)
    assert (back["spec"]["template"], generations(back)) == (first, (3, "3"))


def test_restoring_the_present_template_changes_nothing(api: Api) -> None:
    made = api.create(DAEMONSETS, daemonset())
    assert api.patch(AGENT, revision_of(made["spec"]["template"]), STRATEGIC) == made


@pytest.mark.parametrize("part", ["", "/status"])
@pytest.mark.parametrize("value", ["9", None])
def test_a_client_cannot_set_the_generations(api: Api, part: str, value: str | None) -> None:
    api.create(DAEMONSETS, daemonset())
    patched = api.patch(AGENT + part, {"metadata": {"generation": 9, "annotations": {ANNOTATION: value}}})
    assert generations(patched) == (1, "1")
    replaced = api.put(AGENT, {**daemonset(), "metadata": {"name": "agent"}})
    assert generations(replaced) == (1, "1")


def test_a_new_one_may_bring_the_number_of_its_template(api: Api) -> None:
    """As one restored from a backup does."""
    for name, given, kept in (("a", "7", "7"), ("b", "0", "1"), ("c", "-3", "1")):
        obj = daemonset(name)
        obj["metadata"]["annotations"] = {ANNOTATION: given}
        assert generations(api.create(DAEMONSETS, obj)) == (1, kept)


@pytest.mark.parametrize("text", ["x", "", "1.0", "\uff19", "99999999999999999999"])
def test_a_number_that_is_none(api: Api, text: str) -> None:
    obj = daemonset()
    obj["metadata"]["annotations"] = {ANNOTATION: text}
    code, status = api.call("POST", DAEMONSETS, obj)
    assert (code, ANNOTATION in status["message"]) == (400, True)
    api.create(DAEMONSETS, daemonset())
    assert api.call("PATCH", AGENT, {"metadata": {"annotations": {ANNOTATION: text}}}, MERGE)[0] == 400


def test_status_is_written_at_its_own_address_only(api: Api) -> None:
    api.create(DAEMONSETS, {**daemonset(), "status": {"numberReady": 7}})
    assert api.get(AGENT)["status"]["numberReady"] == 0
    status = {
        "currentNumberScheduled": 3,
        "numberMisscheduled": 1,
        "desiredNumberScheduled": 4,
        "numberReady": 2,
        "observedGeneration": 1,
        "updatedNumberScheduled": 2,
        "numberAvailable": 1,
        "numberUnavailable": 3,
        "collisionCount": 1,
        "conditions": [{"type": "Own", "status": "True"}],
    }
    written = api.patch(f"{AGENT}/status", {"status": status, "spec": {"minReadySeconds": 9}})
    assert (written["status"], "minReadySeconds" in written["spec"]) == (status, False)
    assert api.patch(AGENT, {"status": {"numberReady": 9}})["status"] == status


def test_conditions_merge_by_type(api: Api) -> None:
    api.create(DAEMONSETS, daemonset())
    for kind in ("A", "B"):
        api.patch(f"{AGENT}/status", {"status": {"conditions": [{"type": kind, "status": "True"}]}}, STRATEGIC)
    assert sorted(c["type"] for c in api.get(f"{AGENT}/status")["status"]["conditions"]) == ["A", "B"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        pytest.param({"numberReady": -1}, "status.numberReady: Invalid value: -1", id="negative"),
        pytest.param(
            {"collisionCount": 1}, "status.collisionCount: Invalid value: 1: cannot be decremented", id="back"
        ),
        pytest.param({"collisionCount": None}, "status.collisionCount: Invalid value: 0: cannot be", id="gone"),
    ],
)
def test_a_status_that_cannot_be(api: Api, status: Obj, message: str) -> None:
    api.create(DAEMONSETS, daemonset())
    api.patch(f"{AGENT}/status", {"status": {"collisionCount": 2}})
    code, answer = api.call("PATCH", f"{AGENT}/status", {"status": status}, MERGE)
    assert (code, message in answer["message"]) == (422, True), answer["message"]


def test_table(api: Api) -> None:
    selecting = template(nodeSelector={"zone": "b", "disk": "ssd"})
    api.create(DAEMONSETS, daemonset(template=selecting))
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    numbers = {field: 5 - number for number, field in enumerate((*counts, "numberAvailable"))}
    api.patch(f"{AGENT}/status", {"status": numbers})
    api.create(DAEMONSETS, daemonset("anywhere"))
    code, body = api.raw("GET", DAEMONSETS, headers={"Accept": TABLE})
    assert code == 200
    table = json.loads(body)
    assert [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Up-to-date", "integer", 0),
        ("Available", "integer", 0),
        ("Node Selector", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ]
    assert [row["cells"] for row in table["rows"]] == [
        ["agent", 5, 4, 3, 2, 1, "disk=ssd,zone=b", "0s", "c", "nginx", "app=agent"],
        ["anywhere", 0, 0, 0, 0, 0, "<none>", "0s", "c", "nginx", "app=anywhere"],
    ]


def test_deleting_takes_pods_and_revisions_along(api: Api) -> None:
    """apps/v1 deletes in the background unless told otherwise."""
    owner = api.create(DAEMONSETS, daemonset())["metadata"]
    reference = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": owner["uid"], "controller": True}
    revisions = "/apis/apps/v1/namespaces/default/controllerrevisions"
    revision = {"metadata": {"name": "agent-1", "ownerReferences": [reference]}, "data": {}, "revision": 1}
    api.create(revisions, revision)
    watch = api.watch(revisions, resourceVersion=api.get(revisions)["metadata"]["resourceVersion"])
    api.delete(AGENT)
    assert watch.until("DELETED")["object"]["metadata"]["name"] == "agent-1"


def test_discovery(api: Api) -> None:
    resources = {r["name"]: r for r in api.get("/apis/apps/v1")["resources"]}
    assert (resources["daemonsets"]["shortNames"], resources["daemonsets"]["categories"]) == (["ds"], ["all"])
    assert {"daemonsets/status", "controllerrevisions"} <= resources.keys()
    assert "daemonsets/scale" not in resources
    assert api.call("GET", f"{AGENT}/scale")[0] == 404
