"""Deletion: grace, finalizers, propagation, preconditions; first as rules, then over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oarlock.sandbox.apiserver.kinds.kinds import KINDS, Cascade
from oarlock.sandbox.apiserver.verbs.deletion import DeleteOptions, Step, plan
from tests.sandbox.api_harness import PODS, SETS, START_S, Api, names, pod, replicaset

NOW_S = START_S
STAMP = "2023-11-14T22:13:20Z"


def after(seconds: int) -> str:
    return f"2023-11-14T22:13:{20 + seconds:02d}Z"


def running_pod(**meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "5", **meta},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30},
        "status": {"phase": "Running"},
    }


def leaving(grace_s: int, **meta: Any) -> dict[str, Any]:
    return running_pod(deletionTimestamp=after(grace_s), deletionGracePeriodSeconds=grace_s, **meta)


# pod, options, (deletionTimestamp, grace) written or None, removed
POD_CASES: list[Any] = [
    pytest.param(running_pod(), {}, (after(30), 30), False, id="the pod's own grace"),
    pytest.param(running_pod(), {"grace_period_s": 5}, (after(5), 5), False, id="a grace of the caller"),
    pytest.param(running_pod(), {"grace_period_s": 0}, (after(0), 0), True, id="no grace: at once"),
    pytest.param(running_pod(), {"grace_period_s": -7}, (after(1), 1), False, id="negative grace is one second"),
    pytest.param(
        {**running_pod(), "spec": {"terminationGracePeriodSeconds": 30}}, {}, (after(0), 0), True, id="not bound"
    ),
    pytest.param({**running_pod(), "status": {"phase": "Failed"}}, {}, (after(0), 0), True, id="already failed"),
    pytest.param(leaving(30), {}, None, False, id="a second delete changes nothing"),
    pytest.param(leaving(30), {"grace_period_s": 40}, None, False, id="nor can it prolong"),
    pytest.param(leaving(30), {"grace_period_s": 10}, (after(10), 10), False, id="it may shorten"),
    pytest.param(leaving(30), {"grace_period_s": 0}, (after(0), 0), True, id="down to nothing"),
    pytest.param(
        running_pod(finalizers=["x.io/y"]), {"grace_period_s": 0}, (after(0), 0), False, id="a finalizer holds"
    ),
    pytest.param(leaving(0, finalizers=["x.io/y"]), {}, None, False, id="and goes on holding"),
]


@pytest.mark.parametrize(("obj", "options", "written", "removed"), POD_CASES)
def test_pod_deletion(
    obj: dict[str, Any], options: dict[str, Any], written: tuple[str, int] | None, removed: bool
) -> None:
    step = plan(KINDS["Pod"], obj, DeleteOptions(**options), NOW_S)
    meta = step.write["metadata"] if step.write is not None else None
    got = (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) if meta is not None else None
    assert (got, step.remove) == (written, removed)


def owner(**meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": "u", "resourceVersion": "5", "generation": 4, **meta}}


# options, finalizers before, finalizers written (None: removed at once)
SET_CASES: list[Any] = [
    pytest.param({}, [], None, id="nothing said"),
    pytest.param({"propagation": "Background"}, [], None, id="background"),
    pytest.param({"propagation": "Orphan"}, [], ["orphan"], id="orphan"),
    pytest.param({"propagation": "Foreground"}, [], ["foregroundDeletion"], id="foreground"),
    pytest.param({"orphan_dependents": True}, [], ["orphan"], id="orphanDependents"),
    pytest.param({"orphan_dependents": False}, [], None, id="not orphanDependents"),
    pytest.param({}, ["orphan"], ["orphan"], id="the object's own finalizer decides"),
    pytest.param({"propagation": "Background"}, ["orphan"], None, id="the caller overrules it"),
    pytest.param(
        {"propagation": "Foreground"}, ["orphan", "x.io/y"], ["x.io/y", "foregroundDeletion"], id="others stay"
    ),
    pytest.param({"propagation": "Background"}, ["x.io/y"], ["x.io/y"], id="a foreign finalizer holds"),
]


@pytest.mark.parametrize(("options", "before", "written"), SET_CASES)
def test_propagation(options: dict[str, Any], before: list[str], written: list[str] | None) -> None:
    step = plan(KINDS["ReplicaSet"], owner(finalizers=before), DeleteOptions(**options), NOW_S)
    if written is None:
        assert step == Step(None, True)
        return
    assert step.write is not None
    meta = step.write["metadata"]
    assert (meta["finalizers"], meta["deletionTimestamp"], meta["generation"]) == (written, STAMP, 5)
    assert not step.remove


def test_a_kind_may_orphan_by_default() -> None:
    kind = replace(KINDS["ReplicaSet"], cascade=Cascade.ORPHAN)
    step = plan(kind, owner(), DeleteOptions(), NOW_S)
    assert step.write is not None
    assert step.write["metadata"]["finalizers"] == ["orphan"]
    assert plan(kind, owner(), DeleteOptions(propagation="Background"), NOW_S) == Step(None, True)


def test_events_have_no_dependents_to_orphan() -> None:
    assert plan(KINDS["Event"], owner(), DeleteOptions(propagation="Orphan"), NOW_S) == Step(None, True)


def test_graceful_deletion_over_http(api: Api) -> None:
    """The watch shows the mark first, then the end; repeated deletes only shorten."""
    api.create(PODS, pod("a", nodeName="n", terminationGracePeriodSeconds=30))
    watch = api.watch(PODS, resourceVersion=api.get(PODS)["metadata"]["resourceVersion"])
    first = api.delete(f"{PODS}/a")
    assert first["metadata"]["deletionGracePeriodSeconds"] == 30
    assert api.delete(f"{PODS}/a") == first
    shorter = api.delete(f"{PODS}/a", {"gracePeriodSeconds": 5})
    assert shorter["metadata"]["deletionTimestamp"] == after(5)
    api.delete(f"{PODS}/a", gracePeriodSeconds=0)
    events = watch.take(4)
    assert [e["type"] for e in events] == ["MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
    assert [e["object"]["metadata"]["deletionGracePeriodSeconds"] for e in events] == [30, 5, 0, 0]
    assert api.call("GET", f"{PODS}/a")[0] == 404


def test_delete_answers_with_a_status_or_the_object(api: Api) -> None:
    """Pods come back as they left; other kinds as a Status; what stays comes back as it is, with 202."""
    made = api.create(PODS, pod("a"))
    assert api.delete(f"{PODS}/a")["metadata"]["uid"] == made["metadata"]["uid"]
    made = api.create(SETS, replicaset())
    status = api.delete(f"{SETS}/web")
    uid = made["metadata"]["uid"]
    assert status["status"] == "Success"
    assert status["details"] == {"name": "web", "group": "apps", "kind": "replicasets", "uid": uid}
    made = replicaset()
    made["metadata"]["finalizers"] = ["x.io/y"]
    api.create(SETS, made)
    code, kept = api.call("DELETE", f"{SETS}/web", {"propagationPolicy": "Foreground"})
    assert (code, kept["metadata"]["finalizers"]) == (202, ["x.io/y", "foregroundDeletion"])
    code, status = api.call(
        "PATCH", f"{SETS}/web", {"metadata": {"finalizers": ["x.io/y", "new.io/z"]}}, "application/merge-patch+json"
    )
    assert (code, status["reason"]) == (422, "Invalid")


def test_preconditions(api: Api) -> None:
    made = api.create(PODS, pod("a"))
    uid, rv = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    code, status = api.call("DELETE", f"{PODS}/a", {"preconditions": {"uid": "other"}})
    assert (code, status["reason"]) == (409, "Conflict")
    assert status["message"] == (
        f'Operation cannot be fulfilled on Pod "a": the UID in the precondition (other) does not match the UID '
        f"in record ({uid}). The object might have been deleted and then recreated"
    )
    code, status = api.call("DELETE", f"{PODS}/a", {"preconditions": {"uid": uid, "resourceVersion": "1"}})
    assert (code, status["reason"]) == (409, "Conflict")
    assert (
        f"the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({rv})"
        in (status["message"])
    )
    api.delete(f"{PODS}/a", {"preconditions": {"uid": uid, "resourceVersion": rv}})


BAD_OPTIONS: list[Any] = [
    pytest.param({"propagationPolicy": "Sideways"}, 422, id="unknown policy"),
    pytest.param({"propagationPolicy": "Orphan", "orphanDependents": True}, 422, id="both ways to say it"),
    pytest.param({"gracePeriodSeconds": "soon"}, 400, id="grace is not a number"),
    pytest.param({"kind": "Pod"}, 400, id="not DeleteOptions"),
    pytest.param({"preconditions": {"uid": 5}}, 400, id="uid is not a string"),
]


@pytest.mark.parametrize(("options", "code"), BAD_OPTIONS)
def test_bad_options_delete_nothing(api: Api, options: dict[str, Any], code: int) -> None:
    api.create(PODS, pod("a"))
    assert api.call("DELETE", f"{PODS}/a", options)[0] == code
    assert names(api.get(PODS)) == ["a"]


def test_delete_collection_takes_what_the_selector_takes(api: Api) -> None:
    for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
        api.create(PODS, pod(name, {"app": app}))
    gone = api.delete(PODS, labelSelector="app=x")
    assert (gone["kind"], names(gone)) == ("PodList", ["a", "c"])
    assert names(api.get(PODS)) == ["b"]
    assert api.call("DELETE", "/api/v1/namespaces")[0] == 405
