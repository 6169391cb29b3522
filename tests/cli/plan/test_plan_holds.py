"""A plan, then a fleet that really does it: the same objects come and go, within the same limits."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import orjson
import pytest

from oarlock.cli.plan.acts import UNKNOWN
from oarlock.cli.plan.reasons import ALIKE
from oarlock.testing import gone, ready
from tests.cli.plan.rig import Obj, Rig, acts, is_read_or_dry, owner, rolling

PLURALS = {
    "Pod": "pods",
    "ReplicaSet": "replicasets",
    "ControllerRevision": "controllerrevisions",
}


class Case(NamedTuple):
    """``before``: applied first, and waited for. ``after``: planned, then applied."""

    before: Obj | None
    after: Obj


def of(kind: str, before: Obj | None, **after: Any) -> Case:
    return Case(None if before is None else owner(kind, **before), owner(kind, **after))


NO_BETA: Obj = {"tolerations": [{"key": "lane", "operator": "Exists"}]}
CASES = {
    "replicaset-comes": of("ReplicaSet", None, replicas=3),
    "replicaset-grows": of("ReplicaSet", {"replicas": 2}, replicas=5),
    "replicaset-shrinks": of("ReplicaSet", {"replicas": 7}, replicas=2),
    "replicaset-to-nothing": of("ReplicaSet", {"replicas": 3}, replicas=0),
    "replicaset-other-template": of("ReplicaSet", {"replicas": 2}, replicas=3, image="nginx:2"),
    "replicationcontroller": of("ReplicationController", {"replicas": 1}, replicas=4),
    "replicationcontroller-shrinks": of("ReplicationController", {"replicas": 4}, replicas=1),
    "deployment-comes": of("Deployment", None, replicas=3),
    "deployment-same": of("Deployment", {"replicas": 3}, replicas=3),
    "deployment-grows": of("Deployment", {"replicas": 2}, replicas=5),
    "deployment-shrinks": of("Deployment", {"replicas": 5}, replicas=2),
    "rollout": of("Deployment", {"replicas": 4}, replicas=4, image="nginx:2"),
    "rollout-grows": of("Deployment", {"replicas": 2}, replicas=6, image="nginx:2"),
    "rollout-shrinks": of("Deployment", {"replicas": 6}, replicas=2, image="nginx:2"),
    "rollout-no-surge": of("Deployment", {"replicas": 5}, replicas=5, image="nginx:2", strategy=rolling(0, 2)),
    "rollout-all-at-once": of("Deployment", {"replicas": 5}, replicas=5, image="nginx:2", strategy=rolling("100%", 0)),
    "recreate": of("Deployment", {"replicas": 3}, replicas=3, image="nginx:2", strategy={"type": "Recreate"}),
    "paused": of("Deployment", {"replicas": 2}, replicas=3, image="nginx:2", paused=True),
    "daemonset-comes": of("DaemonSet", None),
    "daemonset-selects": of("DaemonSet", None, template={"nodeSelector": {"disk": "ssd"}}),
    "daemonset-leaves": of("DaemonSet", {}, template={"nodeSelector": {"disk": "ssd"}}),
    "daemonset-tolerates": of("DaemonSet", {}, template=NO_BETA),
    "daemonset-rolls": of("DaemonSet", {}, image="agent:2"),
    "daemonset-rolls-two": of("DaemonSet", {}, image="agent:2", updateStrategy=rolling(0, 2)),
    "daemonset-surges": of("DaemonSet", {}, image="agent:2", updateStrategy=rolling(1, 0)),
    "daemonset-on-delete": of("DaemonSet", {}, image="agent:2", updateStrategy={"type": "OnDelete"}),
}


@pytest.fixture(scope="module", autouse=True)
def nodes(rig: Rig) -> None:
    """One node is tainted, another has a disk."""
    rig.everywhere.patch("node/node-1", {"spec": {"taints": [{"key": "lane", "value": "beta", "effect": "NoExecute"}]}})
    rig.everywhere.patch("node/node-2", {"metadata": {"labels": {"disk": "ssd"}}})


def settled(rig: Rig, obj: Obj, pods: int) -> None:
    """The fleet has done what the file says. A paused rollout has nothing to be ready for."""
    paused = obj["spec"].get("paused")
    on_delete = obj["spec"].get("updateStrategy", {}).get("type") == "OnDelete"
    rig.cluster.wait(f"{obj['kind'].lower()}/web", observed if paused or on_delete else ready)
    if pods:
        rig.cluster.wait("pods", count=pods)
    else:
        rig.cluster.wait("pods", gone)


def observed(found: Obj) -> bool:
    return bool(found["metadata"]["generation"] == found["status"].get("observedGeneration"))


def apply(rig: Rig, obj: Obj, there: bool) -> None:
    if there:
        rig.cluster.patch(f"{obj['kind'].lower()}/web", {"spec": _whole(obj["spec"])})
    else:
        rig.cluster.create(obj)


def _whole(spec: Obj) -> Obj:
    """Of a strategy, what the type does not have goes, as `kubectl apply` sees to."""
    if spec.get("strategy", {}).get("type") == "Recreate":
        return {**spec, "strategy": {"type": "Recreate", "rollingUpdate": None}}
    return spec


class Done(NamedTuple):
    """What came of a plan, or of a fleet: what came and stayed, what was there before and went, sizes of ReplicaSets,
    most pods at once. Names, each after its resource.
    """

    came: list[str]
    went: list[str]
    sizes: dict[str, int]
    pods_max: int


def lasting(acts: list[tuple[str, str]], sizes: dict[str, int], pods_max: int) -> Done:
    """``acts``: create or delete, and a name, in order. What came and went again is left out: how many such pods there
    are depends on which of two turns is first. What went and came again, as on the node of a DaemonSet, is in both.
    """
    came, went = [], []
    for verb, name in acts:
        if verb == "create":
            came.append(name)
        elif name in came and not name.endswith(UNKNOWN):
            came.remove(name)
        else:
            went.append(name)
    return Done(came, went, sizes, pods_max)


def told(plan: Obj) -> Done:
    """By the plan. Of pods that are alike it does not claim to know which ones go."""
    every = [act for step in plan["steps"] for act in step["acts"]]
    sizes = {act["name"]: act["after"] for act in every if act["verb"] == "scale"}
    pairs = [
        (act["verb"], f"{PLURALS[act['kind']]} {act['name']}") for act in every if act["verb"] in ("create", "delete")
    ]
    alike = {f"pods {act['name']}" for act in every if act.get("why") == ALIKE}
    found = lasting(pairs, sizes, plan["pods_max"])
    return found._replace(went=[name[:-5] + UNKNOWN if name in alike else name for name in found.went])


def done(calls: list[Obj], pods: int) -> Done:
    """By the workers of the fleet. ``pods``: how many were there before."""
    pairs, sizes, most = [], {}, pods
    for call in calls:
        of, verb = call["objectRef"], call["verb"]
        if call["responseStatus"]["code"] >= 300 or not call["userAgent"].endswith("(worker)") or "subresource" in of:
            continue
        if verb in ("create", "delete"):
            pairs.append((verb, f"{of['resource']} {of['name']}"))
        elif verb == "patch" and of["resource"] == "replicasets":
            size = call["requestObject"].get("spec", {}).get("replicas")
            sizes.update({} if size is None else {of["name"]: size})
        if of["resource"] == "pods":
            pods += {"create": 1, "delete": -1}.get(verb, 0)
            most = max(most, pods)
    return lasting(pairs, sizes, most)


def same_names(said: list[str], real: list[str]) -> bool:
    """Names whose last part nobody can know yet are compared without it."""
    known = {name for name in said if not name.endswith(UNKNOWN)}
    others = [name for name in real if name not in known]
    prefixes = Counter(name.rstrip("?") for name in said if name not in known)
    return (
        known <= set(real)
        and prefixes.total() == len(others)
        and all(sum(name.startswith(prefix) for name in others) >= count for prefix, count in prefixes.items())
    )


@pytest.mark.parametrize("name", CASES)
def test_what_was_planned_is_what_happens(rig: Rig, name: str) -> None:
    case = CASES[name]
    if case.before is not None:
        apply(rig, case.before, there=False)
        rig.cluster.wait(f"{case.before['kind'].lower()}/web", ready)
        rig.everywhere.time.advance(3600)  # ages are compared by order of magnitude: a second must make no difference
    before = len(rig.asked())
    plan = rig.plan(case.after)
    planned = len(rig.asked())
    mine = [each for each in rig.asked(before) if each["userAgent"].endswith("(plan)")]
    assert mine
    assert all(map(is_read_or_dry, mine))
    assert plan["rests"], plan["warnings"]

    apply(rig, case.after, there=case.before is not None)
    settled(rig, case.after, plan["ends"]["pods"])
    real = done(rig.asked(planned), plan["pods_before"])

    said = told(plan)
    assert same_names(said.came, real.came), (said, real)
    assert same_names(said.went, real.went), (said, real)
    assert said.sizes == real.sizes
    assert real.pods_max <= said.pods_max
    assert plan["would_change"] == (plan["action"] != "none" or bool(plan["steps"]))


def test_pods_that_are_adopted(rig: Rig) -> None:
    for number in range(3):
        pod = owner("ReplicaSet")["spec"]["template"]
        rig.cluster.create(
            {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": {**pod["metadata"], "name": f"p{number}"}}
        )
    rig.cluster.wait("pods", count=3)
    plan = rig.plan(owner("ReplicaSet", replicas=4))
    assert sorted(acts(plan, "adopt")) == ["p0", "p1", "p2"]
    assert acts(plan, "create") == ["web-?????"]
    assert plan["ends"] == {"pods": 4, "available": 4}
    made = rig.cluster.create(owner("ReplicaSet", replicas=4))
    rig.cluster.wait("replicaset/web", ready)
    owned = [
        each["metadata"]["name"]
        for each in rig.cluster.list("pods")
        if each["metadata"].get("ownerReferences", [{}])[0].get("uid") == made["metadata"]["uid"]
    ]
    assert set(owned) >= {"p0", "p1", "p2"}
    assert len(owned) == 4


def test_a_pod_that_is_selected_no_more_is_released(rig: Rig) -> None:
    """The cluster is not at rest while nothing works on it; without a fleet it stays so until the plan is made."""
    rig.cluster.create(owner("ReplicaSet", replicas=2))
    rig.cluster.wait("replicaset/web", ready)
    with rig.everywhere.fault(403, verb=["patch", "create"], resource="pods", by="controllers"):
        name = rig.cluster.list("pods")[0]["metadata"]["name"]
        rig.cluster.patch(f"pod/{name}", {"metadata": {"labels": {"app": "other"}}})
        plan = rig.plan(owner("ReplicaSet", replicas=2))
    assert (plan["action"], plan["would_change"]) == ("none", True)
    assert acts(plan, "release") == [name]
    assert len(acts(plan, "create")) == 1


def test_an_earlier_template_takes_its_replicaset_again(rig: Rig) -> None:
    first, second = owner("Deployment", replicas=2), owner("Deployment", replicas=2, image="nginx:2")
    rig.cluster.create(first)
    rig.cluster.wait("deployment/web", ready)
    (old,) = [each["metadata"]["name"] for each in rig.cluster.list("replicasets")]
    apply(rig, second, there=True)
    rig.cluster.wait("deployment/web", ready)
    plan = rig.plan(first)
    assert acts(plan, "create", "ReplicaSet") == []
    assert plan["template_changes"]
    assert [each["name"] for each in plan["ends"]["replicasets"] if each["replicas"]] == [old]


def test_the_json_can_be_read_by_others(rig: Rig) -> None:
    plan = rig.plan(owner("DaemonSet"))
    assert orjson.loads(orjson.dumps(plan)) == plan
    assert plan["nodes"] == {"fit": 3, "skipped": [{"why": "taint lane=beta:NoExecute", "nodes": ["node-1"]}]}
