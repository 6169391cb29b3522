"""What the comparer sees, and what it leaves alone: every part of a scenario changed in turn."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.differential.compare import differences
from tests.differential.explain import explain
from tests.differential.moment import Moment
from tests.differential.reading import POD_HASH
from tests.differential.recorded import event, owner, pod, reference, replicaset, revision, snapshot
from tests.differential.snapshot import Snapshot

Obj = dict[str, Any]
RS, DS = reference("ReplicaSet", "web"), reference("DaemonSet", "agent")
COUNTS = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "fullyLabeledReplicas": 2, "observedGeneration": 1}
DAEMONS = {"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 2, "numberMisscheduled": 0}


def daemon(name: str, node: str, digest: str = "h1", generation: str = "1", **about: Any) -> Obj:
    labels = {"app": "agent", "controller-revision-hash": digest, "pod-template-generation": generation}
    return pod(name, DS, labels=labels, node=node, pinned=node, **about)


def objects() -> dict[str, tuple[str, Obj]]:
    """By a short name, to be changed."""
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "m"}
    return {
        "web": ("ReplicaSet", owner("ReplicaSet", "web", {**COUNTS, "conditions": [failed]}, replicas=2)),
        "web-1": ("Pod", pod("web-1", RS, labels={"app": "web"})),
        "web-2": ("Pod", pod("web-2", RS, labels={"app": "web"}, restarts=1)),
        "stray": ("Pod", pod("stray", None, labels={"app": "away"})),
        "agent": ("DaemonSet", owner("DaemonSet", "agent", dict(DAEMONS))),
        "agent-1": ("Pod", daemon("agent-1", "n1")),
        "agent-2": ("Pod", daemon("agent-2", "n2")),
        "r1": ("ControllerRevision", revision("agent-h1", "agent", 1, "h1")),
        "r2": ("ControllerRevision", revision("agent-h2", "agent", 2, "h2")),
        **deployed(),
    }


def deployed(new: str = "n", old: str = "o") -> dict[str, tuple[str, Obj]]:
    """A Deployment, and its ReplicaSets with these hashes."""
    done = {"type": "Progressing", "status": "True", "reason": "Done", "message": f'ReplicaSet "site-{new}" is done.'}
    pod_of_new = pod("w", reference("ReplicaSet", f"site-{new}"), labels={"app": "site", POD_HASH: new})
    return {
        "deployment": ("Deployment", owner("Deployment", "site", {"replicas": 1, "conditions": [done]})),
        "new": ("ReplicaSet", replicaset(f"site-{new}", "nginx:2", {"replicas": 1}, replicas=1, revision=2)),
        "old": ("ReplicaSet", replicaset(f"site-{old}", "nginx:1", {"replicas": 0})),
        "new-1": ("Pod", pod_of_new),
    }


EVENTS = (event("web", "SuccessfulCreate", 2), event("web", "FailedCreate", 3), event("agent", "SuccessfulDelete"))


def taken(change: Callable[[dict[str, tuple[str, Obj]]], None] | None = None, events: Any = EVENTS) -> Snapshot:
    there = copy.deepcopy(objects())
    if change:
        change(there)
    return snapshot(*there.values(), events=events)


def set_in(name: str, *path: str | int, to: Any) -> Callable[[dict[str, tuple[str, Obj]]], None]:
    def change(there: dict[str, tuple[str, Obj]]) -> None:
        target: Any = there[name][1]
        for part in path[:-1]:
            target = target[part]
        target[path[-1]] = to

    return change


def gone(name: str) -> Callable[[dict[str, tuple[str, Obj]]], None]:
    def change(there: dict[str, tuple[str, Obj]]) -> None:
        there.pop(name)

    return change


SEEN = {
    "a pod is missing": gone("web-2"),
    "a stray pod is missing": gone("stray"),
    "an owner is missing": gone("web"),
    "a revision is missing": gone("r1"),
    "another phase": set_in("web-1", "status", "phase", to="Failed"),
    "not ready": set_in("web-1", "status", "conditions", 0, "status", to="False"),
    "another label": set_in("web-1", "metadata", "labels", "app", to="other"),
    "an annotation": set_in("web-1", "metadata", "annotations", to={"a": "b"}),
    "a finalizer": set_in("web-1", "metadata", "finalizers", to=["f"]),
    "on its way out": set_in("web-1", "metadata", "deletionTimestamp", to="2026-01-02T03:04:05Z"),
    "no owner": set_in("web-1", "metadata", "ownerReferences", to=[]),
    "a reference without a flag": set_in("web-1", "metadata", "ownerReferences", 0, "blockOwnerDeletion", to=False),
    "restarts": set_in("web-1", "status", "containerStatuses", 0, "restartCount", to=7),
    "another image": set_in("web-1", "spec", "containers", 0, "image", to="i:2"),
    "no node": set_in("web-1", "spec", "nodeName", to=""),
    "a daemon pod elsewhere": set_in("agent-1", "spec", "nodeName", to="n3"),
    "a daemon pod of another revision": set_in("agent-1", "metadata", "labels", "controller-revision-hash", to="h2"),
    "a daemon pod of no revision": set_in("agent-1", "metadata", "labels", "controller-revision-hash", to="h3"),
    "a daemon pod of another generation": set_in("agent-1", "metadata", "labels", "pod-template-generation", to="2"),
    "a revision's number": set_in("r1", "revision", to=5),
    "a revision's data": set_in("r1", "data", to={"spec": 9}),
    "a revision's owner": set_in("r1", "metadata", "ownerReferences", to=[]),
    "a revision's name": set_in("r1", "metadata", "name", to="agent-x"),
    "generation": set_in("web", "metadata", "generation", to=2),
    "a condition's reason": set_in("web", "status", "conditions", 0, "reason", to="FailedDelete"),
    "no condition": set_in("web", "status", "conditions", to=[]),
    **{f"status.{name}": set_in("web", "status", name, to=9) for name in COUNTS},
    **{f"daemon status.{name}": set_in("agent", "status", name, to=9) for name in DAEMONS},
    "a Deployment's condition says something else": set_in("deployment", "status", "conditions", 0, "message", to="m"),
    "a Deployment's ReplicaSet is missing": gone("old"),
    "another template": set_in("old", "spec", "template", "spec", "containers", 0, "image", to="nginx:3"),
    "another size": set_in("new", "spec", "replicas", to=2),
    "another minReadySeconds": set_in("new", "spec", "minReadySeconds", to=2),
    "a revision's number on it": set_in("new", "metadata", "annotations", "deployment.kubernetes.io/revision", to="3"),
    "a generation that is not observed": set_in("new", "metadata", "generation", to=2),
    "a ReplicaSet let go": set_in("new", "metadata", "ownerReferences", to=[]),
    "another selector": set_in("new", "spec", "selector", "matchLabels", POD_HASH, to="o"),
    "a pod of another template": set_in("new-1", "metadata", "labels", POD_HASH, to="o"),
    "a pod of another ReplicaSet": set_in("new-1", "metadata", "ownerReferences", 0, "uid", to="uid-site-o"),
    "a field of the status": set_in("agent", "status", "collisionCount", to=1),
}


def reported(upstream: Snapshot, fleet: Snapshot) -> list[str]:
    """Differences without an explanation, at a moment without steps."""
    moment = Moment((), upstream, fleet, upstream, fleet)
    return [str(each) for each in differences(upstream, fleet) if not explain(each, moment)]


def test_equal_sides_do_not_differ() -> None:
    assert reported(taken(), taken()) == []


@pytest.mark.parametrize("what", SEEN)
@pytest.mark.parametrize("side", ["upstream", "fleet"])
def test_every_change_of_one_side_is_reported(what: str, side: str) -> None:
    changed = taken(SEEN[what])
    pair = (changed, taken()) if side == "upstream" else (taken(), changed)
    assert reported(*pair)


@pytest.mark.parametrize(
    ("events", "is_seen"),
    [
        ((event("web", "SuccessfulCreate", 3), *EVENTS[1:]), True),
        ((event("web", "SuccessfulDelete", 2), *EVENTS[1:]), True),
        ((EVENTS[0], EVENTS[2]), True),
        ((EVENTS[0], event("web", "FailedCreate", 9), EVENTS[2]), False),
        ((*EVENTS, event("agent", "FailedDaemonPod")), True),
        ((*EVENTS, event("nobody", "SuccessfulCreate")), False),
        (EVENTS[:2], True),
    ],
    ids=["number", "reason", "never refused", "refused more often", "one more", "about others", "one less"],
)
def test_events(events: tuple[Obj, ...], is_seen: bool) -> None:
    assert bool(reported(taken(), taken(events=events))) is is_seen


def test_beyond_what_a_source_tells_of_an_object_numbers_say_nothing() -> None:
    full = (event("agent", "SuccessfulCreate", 25),)
    assert reported(taken(events=full), taken(events=(event("agent", "SuccessfulCreate", 24),))) == []
    assert reported(taken(events=full), taken(events=(event("agent", "SuccessfulCreate", 9),)))


def unended(there: dict[str, tuple[str, Obj]], new: str) -> None:
    """One of two nodes has a pod of the new revision."""
    old = "agent-2" if new == "agent-1" else "agent-1"
    there[new][1]["metadata"]["labels"] |= {"controller-revision-hash": "h2", "pod-template-generation": "2"}
    assert there[old][1]["metadata"]["labels"]["controller-revision-hash"] == "h1"


def test_which_node_an_update_has_reached_is_chance() -> None:
    first, second = (taken(partial(unended, new=new)) for new in ("agent-1", "agent-2"))
    assert reported(first, second) == []
    assert reported(first, taken())


def test_names_uids_and_times_do_not_matter() -> None:
    def renamed(there: dict[str, tuple[str, Obj]]) -> None:
        for name, (kind, obj) in there.items():
            if kind == "Pod":
                obj["metadata"] |= {"name": f"other-{name}", "uid": name, "creationTimestamp": "2027-01-01T00:00:00Z"}

    assert reported(taken(), taken(renamed)) == []


def steps(new: str, text: str, *sizes: int) -> tuple[Obj, ...]:
    return tuple(
        event("site", "ScalingReplicaSet", message=text.format(name=f"site-{new}", size=size)) for size in sizes
    )


def rolled(new: str, *events: Obj) -> Snapshot:
    return snapshot(*deployed(new).values(), events=events)


UP, NOW_UP, DOWN = (
    "Scaled up replica set {name} to {size}",
    "Scaled up replica set {name} from 0 to {size}",
    "Scaled down replica set {name} to {size}",
)


@pytest.mark.parametrize(
    ("upstream", "fleet", "is_seen"),
    [
        (("x", UP, 1), ("y", NOW_UP, 1), False),
        (("x", UP, 1, 2, 3), ("y", NOW_UP, 3), False),
        (("x", UP, 1), ("y", DOWN, 1), True),
        (("x", UP, 1), ("o", NOW_UP, 1), True),
        (("x", UP, 1), ("y", "Scaled up {name}", 1), True),
        (("x", UP), ("y", NOW_UP, 1), True),
    ],
    ids=["their texts", "how many steps", "down", "another", "no such text", "none"],
)
def test_what_a_deployment_tells_of_sizes(upstream: Any, fleet: Any, is_seen: bool) -> None:
    assert bool(reported(rolled("x", *steps(*upstream)), rolled("y", *steps(*fleet)))) is is_seen


def test_hashes_do_not_matter() -> None:
    assert reported(snapshot(*deployed("x", "z").values()), snapshot(*deployed().values())) == []
