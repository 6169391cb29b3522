"""Whether there is nothing left to wait for: a side at rest, and every sign that it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.differential.quiet import unsettled
from tests.differential.reading import NEVER_READY
from tests.differential.recorded import event, owner, pod, reference, scene

Obj = dict[str, Any]
There = dict[str, tuple[str, Obj]]
RS, DS = reference("ReplicaSet", "web"), reference("DaemonSet", "agent")
COUNTS = {"replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2, "observedGeneration": 1}
WEB = {"app": "web", "tier": "a"}
DAEMONS = {"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 2, "numberAvailable": 2}
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}


def node(name: str, **spec: Any) -> tuple[str, Obj]:
    meta = {"name": name, "labels": {"role": "a"}, "creationTimestamp": "2026-01-02T03:04:05Z"}
    return "Node", {"metadata": meta, "spec": spec}


def by_label(app: str) -> Obj:
    return {"selector": {"matchLabels": {"app": app}}, "template": {"metadata": {"labels": {"app": app, "tier": "a"}}}}


def objects() -> There:
    """Two pods of a ReplicaSet and two of a DaemonSet, all well."""
    template = {"spec": {"nodeSelector": {"role": "a"}}}
    daemons = {**DAEMONS, "updatedNumberScheduled": 2, "observedGeneration": 1}
    by_app = {"selector": {"matchLabels": {"app": "agent"}}, "updateStrategy": ROLLING, "template": template}
    return {
        "n1": node("n1"),
        "n2": node("n2"),
        "web": (
            "ReplicaSet",
            owner("ReplicaSet", "web", {**COUNTS}, replicas=2, **by_label("web")),
        ),
        "web-1": ("Pod", pod("web-1", RS, labels=dict(WEB), node="n1")),
        "web-2": ("Pod", pod("web-2", RS, labels=WEB, node="n1")),
        "agent": ("DaemonSet", owner("DaemonSet", "agent", daemons, **by_app)),
        "agent-1": ("Pod", pod("agent-1", DS, labels={"app": "agent"}, node="n1")),
        "agent-2": ("Pod", pod("agent-2", DS, labels={"app": "agent"}, node="n2")),
    }


def put(name: str, *path: str | int, to: Any) -> Callable[[There], None]:
    def change(there: There) -> None:
        target: Any = there[name][1]
        for part in path[:-1]:
            target = target[part]
        target[path[-1]] = to

    return change


def less(name: str) -> Callable[[There], None]:
    def change(there: There) -> None:
        del there[name]

    return change


def more(name: str, kind: str, obj: Obj) -> Callable[[There], None]:
    def change(there: There) -> None:
        there[name] = kind, obj

    return change


FAILING = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}]
RESTLESS = {
    "a pod too few": less("web-2"),
    "a pod too many": more("w", "Pod", pod("w", RS, labels=WEB, node="n1")),
    "a generation not observed": put("web", "metadata", "generation", to=2),
    "a status behind": put("web", "status", "replicas", to=1),
    "labels not yet counted": put("web", "status", "fullyLabeledReplicas", to=1),
    "not yet available": put("web", "status", "availableReplicas", to=1),
    "an old failure": put("web", "status", "conditions", to=FAILING),
    "an owner on its way out": put("web", "metadata", "deletionTimestamp", to="2026-01-02T03:04:05Z"),
    "a pod on its way out": put("web-1", "metadata", "deletionTimestamp", to="2026-01-02T03:04:05Z"),
    "a pod of an owner that is gone": put("web-1", "metadata", "ownerReferences", 0, "uid", to="gone"),
    "a pod to be released": put("web-1", "metadata", "labels", "app", to="away"),
    "a pod to be adopted": more("w", "Pod", pod("w", None, labels={"app": "web"}, node="n1")),
    "a pod that has not started": put("web-1", "status", "phase", to="Pending"),
    "a pod to be ready": put("web-1", "status", "conditions", 0, "status", to="False"),
    "a pod to be not ready": put("web-1", "metadata", "annotations", to={NEVER_READY: "true"}),
    "a pod to be bound": put("web-1", "spec", "nodeName", to=""),
    "a pod on no node": put("web-1", "spec", "nodeName", to="gone"),
    "a node without its pod": less("agent-2"),
    "a node more": more("n3", *node("n3")),
    "a node with two": more("a", "Pod", pod("a", DS, labels={"app": "agent"}, node="n1")),
    "a node of others": put("n2", "metadata", "labels", "role", to="b"),
    "a tainted node": put("n2", "spec", "taints", to=[{"key": "k", "effect": "NoExecute"}]),
    "a node just born": put(
        "n2", "spec", "taints", to=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    ),
    "a failed daemon pod": put("agent-1", "status", "phase", to="Failed"),
    "an update under way": put("agent", "status", "updatedNumberScheduled", to=1),
    "a daemon status behind": put("agent", "status", "numberReady", to=1),
}


def reason(*changes: Callable[[There], None], events: tuple[Obj, ...] = (), taints_wake: bool = True) -> str:
    there = objects()
    for change in changes:
        change(there)
    return unsettled(scene(*there.values(), events=events), taints_wake=taints_wake)


def test_at_rest() -> None:
    assert reason() == ""


@pytest.mark.parametrize("what", RESTLESS)
def test_not_at_rest(what: str) -> None:
    assert reason(RESTLESS[what])


def test_a_held_pod_whose_owner_is_gone() -> None:
    gone = dict(RS, uid="gone")
    assert reason(more("held", "Pod", pod("held", gone, deleting=True, finalizers=["f"]))) == ""
    assert reason(more("held", "Pod", pod("held", gone, deleting=True)))


def test_a_pod_whose_image_cannot_be_pulled_stays_pending() -> None:
    pending = [
        put("web-1", "status", "phase", to="Pending"),
        put("web-1", "status", "conditions", 0, "status", to="False"),
    ]
    counts = [put("web", "status", name, to=1) for name in ("readyReplicas", "availableReplicas")]
    assert reason(*pending, *counts)
    assert reason(*pending, *counts, put("web-1", "spec", "containers", 0, "image", to="i:nonexistent")) == ""


QUOTA = more("quota", "ResourceQuota", {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": "3"}}})


def test_pods_that_quota_refuses() -> None:
    few = put("web", "status", to=dict.fromkeys(COUNTS, 1))
    failing = put("web", "status", "conditions", to=FAILING)
    assert reason(less("web-2"), few, QUOTA)
    assert reason(less("web-2"), few, failing, QUOTA) == ""
    assert reason(less("web-2"), less("agent-2"), few, failing, QUOTA), "there is room for one"


def test_a_daemon_pod_that_quota_refuses() -> None:
    room = more("quota", "ResourceQuota", {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": "4"}}})
    new = more("n3", *node("n3"))
    assert reason(new, room)
    assert reason(new, room, events=(event("agent", "FailedCreate"),)) == ""
    assert reason(new, room, events=(event("agent", "SuccessfulCreate", 25),)) == "", "no more events can come"


def test_an_update_that_cannot_go_on() -> None:
    """As many nodes are without an available pod as may be."""
    down = [
        put("agent-1", "status", "conditions", 0, "status", to="False"),
        put("agent-1", "metadata", "annotations", to={NEVER_READY: "true"}),
        put("agent", "status", "numberReady", to=1),
        put("agent", "status", "numberAvailable", to=1),
        put("agent", "status", "updatedNumberScheduled", to=1),
    ]
    assert reason(*down) == ""
    assert reason(*down, put("agent", "spec", "updateStrategy", "rollingUpdate", "maxUnavailable", to=2))


SURGING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


def test_an_update_that_surges() -> None:
    """No pod may be missing, and yet it goes on."""
    surging = put("agent", "spec", "updateStrategy", to=SURGING)
    assert reason(surging) == ""
    assert reason(surging, put("agent", "status", "updatedNumberScheduled", to=1)) == (
        "DaemonSet agent: old pods are to be replaced"
    )


KEPT_OFF = put("n2", "spec", "taints", to=[{"key": "k", "effect": "NoSchedule"}])


def test_a_taint_that_wakes_nobody() -> None:
    """The status is of before the taint until something else wakes the set."""
    assert "does not say 1 desired" in reason(KEPT_OFF)
    assert reason(KEPT_OFF, taints_wake=False) == ""
    counted = [put("agent", "status", name, to=1) for name in (*DAEMONS, "numberMisscheduled")]
    counted.append(put("agent", "status", "updatedNumberScheduled", to=1))
    assert reason(KEPT_OFF, *counted) == reason(KEPT_OFF, *counted, taints_wake=False) == ""
    assert reason(*counted), "the taint has gone"
    assert reason(*counted, taints_wake=False) == ""
    half = [*counted, put("agent", "status", "currentNumberScheduled", to=2)]
    assert reason(KEPT_OFF, *half, taints_wake=False), "it was counted, and wrongly"


@pytest.mark.parametrize(
    "what", [each for each in RESTLESS if each not in ("a daemon status behind", "an update under way")]
)
def test_all_else_is_waited_for_all_the_same(what: str) -> None:
    assert reason(RESTLESS[what], taints_wake=False)
