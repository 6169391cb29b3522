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
from tests.differential.recorded import event, owner, pod, reference, revision, snapshot
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
