"""Whether there is nothing left to wait for about a Deployment: at rest in each of its ways, and every sign against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.differential.hands_rollouts import DESIRED
from tests.differential.quiet import unsettled
from tests.differential.reading import POD_HASH
from tests.differential.recorded import owner, pod, reference, replicaset, scene

Obj = dict[str, Any]
There = dict[str, tuple[str, Obj]]
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
RECREATE = {"type": "Recreate"}
COUNTS = ("replicas", "readyReplicas", "availableReplicas")
DONE = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
FAILING = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
NEW, OLD = "web-new", "web-old"


def template(image: str) -> Obj:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}


def of_size(name: str, image: str, size: int, available: int) -> tuple[str, Obj]:
    """All its pods are there; so many are ready."""
    said = dict(zip(COUNTS, (size, available, available), strict=True))
    made = replicaset(name, image, {**said, "fullyLabeledReplicas": size}, replicas=size, revision=1 + (name == NEW))
    made["metadata"]["annotations"][DESIRED] = "4"
    return "ReplicaSet", made


def objects(new: tuple[int, int] = (4, 4), old: tuple[int, int] = (0, 0), reason: str = "") -> There:
    """A Deployment of 4 with two ReplicaSets of these sizes and available pods; its status says so."""
    sums = [sum(pair) for pair in zip(new, old, strict=True)]
    said = {"replicas": sums[0], "updatedReplicas": new[0], "readyReplicas": sums[1], "availableReplicas": sums[1]}
    condition = {**DONE, "reason": reason or DONE["reason"]}
    more = {"unavailableReplicas": sums[0] - sums[1], "observedGeneration": 1, "conditions": [condition]}
    spec = {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template("nginx:2"),
        "strategy": dict(ROLLING),
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
    }
    there: There = {
        "web": ("Deployment", owner("Deployment", "web", {**said, **more}, **spec)),
        NEW: of_size(NEW, "nginx:2", *new),
        OLD: of_size(OLD, "nginx:1", *old),
        "n": ("Node", {"metadata": {"name": "n", "creationTimestamp": "", "labels": {}}, "spec": {}}),
    }
    for name, (size, available) in ((NEW, new), (OLD, old)):
        labels = there[name][1]["metadata"]["labels"]
        for number in range(size):
            never = {} if number < available else {"oarlock.io/sim-never-ready": "true"}
            made = pod(
                f"{name}-{number}", reference("ReplicaSet", name), labels=labels, ready=not never, annotations=never
            )
            there[f"{name}-{number}"] = "Pod", made
    return there


def put(name: str, *path: str | int, to: Any) -> Callable[[There], None]:
    def change(there: There) -> None:
        target: Any = there[name][1]
        for part in path[:-1]:
            target = target[part]
        target[path[-1]] = to

    return change


def reason(there: There, *changes: Callable[[There], None]) -> str:
    for change in changes:
        change(there)
    return unsettled(scene(*there.values()))


SPEC = ("web", "spec")
PAUSED = put(*SPEC, "paused", to=True)
SAYS_PAUSED = put("web", "status", "conditions", 0, "reason", to="DeploymentPaused")
TO_RECREATE = put(*SPEC, "strategy", to=RECREATE)
GONE = put(OLD, "status", "replicas", to=0)
HELD = pod(
    "held", reference("ReplicaSet", OLD), labels={"app": "web", POD_HASH: "old"}, deleting=True, finalizers=["f"]
)


def held(there: There) -> None:
    there["held"] = "Pod", HELD


def without_new(there: There) -> None:
    del there[NEW]


REST = [
    pytest.param(objects(), (), id="done"),
    pytest.param(objects((2, 0), (3, 3), "ReplicaSetUpdated"), (), id="as far as its limits let it go"),
    pytest.param(
        objects((1, 0), (4, 4), "ReplicaSetUpdated"),
        (put(*SPEC, "strategy", "rollingUpdate", to={"maxSurge": 1, "maxUnavailable": 0}),),
        id="none may be missing",
    ),
    pytest.param(objects((0, 0), (4, 4)), (PAUSED, SAYS_PAUSED), id="paused"),
    pytest.param(
        objects((2, 0), (3, 3), "ProgressDeadlineExceeded"),
        (put(*SPEC, "progressDeadlineSeconds", to=2),),
        id="its deadline has passed",
    ),
    pytest.param(
        objects((0, 0), (0, 0), "ReplicaSetUpdated"), (TO_RECREATE, without_new, held), id="an old pod is held"
    ),
]


@pytest.mark.parametrize(("there", "changes"), REST)
def test_at_rest(there: There, changes: tuple[Callable[[There], None], ...]) -> None:
    assert reason(there, *changes) == ""


RESTLESS = [
    pytest.param(objects((1, 0), (3, 3)), (), "its new ReplicaSet has size 1", id="there is room for a new one"),
    pytest.param(objects((2, 1), (3, 3)), (), "old pods are to go", id="a new one has become available"),
    pytest.param(objects((1, 0), (4, 3)), (), "old pods are to go", id="an old one is not available"),
    pytest.param(objects((5, 5)), (), "its new ReplicaSet has size 5", id="scaled by hand"),
    pytest.param(objects((0, 0)), (without_new,), "has no new ReplicaSet", id="a ReplicaSet is missing"),
    pytest.param(
        objects(), (put("web", "status", "updatedReplicas", to=3),), "4 updatedReplicas", id="a status behind"
    ),
    pytest.param(objects(), (put("web", "metadata", "generation", to=2),), "not observed", id="a generation"),
    pytest.param(objects(), (put(*SPEC, "replicas", to=5),), "is to be scaled", id="another size"),
    pytest.param(
        objects(),
        (put("web", "metadata", "annotations", to={"deprecated.deployment.rollback.to": "0"}),),
        "rolled back",
        id="a rollback",
    ),
    pytest.param(objects(), (PAUSED,), "say that it is paused", id="to be paused"),
    pytest.param(
        objects((3, 3)),
        (PAUSED, SAYS_PAUSED),
        "its only ReplicaSet is to be scaled",
        id="paused, and scaled by hand",
    ),
    pytest.param(objects(reason="ReplicaSetUpdated"), (), "say that it is done", id="done, and not said"),
    pytest.param(
        objects((2, 0), (3, 3), "ReplicaSetUpdated"),
        (put(*SPEC, "progressDeadlineSeconds", to=2),),
        "its deadline is to pass",
        id="a deadline",
    ),
    pytest.param(objects(), (put(*SPEC, "progressDeadlineSeconds", to=2**31 - 1),), "speaks of progress", id="none"),
    pytest.param(objects(), (put(*SPEC, "revisionHistoryLimit", to=0),), "cleaned up", id="a ReplicaSet too many"),
    pytest.param(objects((0, 0), (4, 4)), (TO_RECREATE,), "old pods are to go", id="to be recreated"),
    pytest.param(objects((0, 0), (0, 0)), (TO_RECREATE,), "its new ReplicaSet has size 0", id="recreated"),
    pytest.param(
        objects(),
        (put(OLD, "metadata", "ownerReferences", to=[]),),
        "is to be adopted",
        id="a ReplicaSet to be adopted",
    ),
    pytest.param(
        objects(), (put(OLD, "metadata", "labels", "app", to="away"),), "is to be released", id="one to be released"
    ),
    pytest.param(
        objects(),
        (put("web", "status", "conditions", to=[DONE, FAILING]),),
        "a failure is over",
        id="a failure that is over",
    ),
]


@pytest.mark.parametrize(("there", "changes", "expected"), RESTLESS)
def test_not_at_rest(there: There, changes: tuple[Callable[[There], None], ...], expected: str) -> None:
    assert expected in reason(there, *changes)
