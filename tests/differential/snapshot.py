"""What a side shows of a scenario, without names of pods, UIDs and times. Pure.

Pods are told apart by what can be seen on them, and a revision by its number: `hash` labels of one revision are equal
on one side, and the number is what both sides have in common. A Deployment's ReplicaSets are called by their templates
(`naming`). In how many steps one was resized is chance: neither its generation nor how often a Deployment told that it
scaled it up or down is kept, but that it did.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson

from tests.differential.naming import Naming, template_of
from tests.differential.reading import (
    HASH,
    POD_HASH,
    annotated,
    controller,
    is_deleting,
    is_owned,
    is_ready,
    labels,
    phase,
    status,
    target,
)
from tests.differential.scene import Scene

Obj = dict[str, Any]
Snapshot = dict[str, Any]
NO_OWNER = "nobody"
MARK = "differential.mark"
"""Annotation of pods that a later step has to tell apart."""
SPAM_BURST = 25
"""Events about one object after which its source is silent (upstream: client-go/tools/record/events_cache.go)."""
SCALED = "Normal ScalingReplicaSet"
_STEP = re.compile(r"Scaled (up|down) replica set (\S+) (?:from \d+ )?to \d+$")  # of old, the new size alone


def take(scene: Scene) -> Snapshot:
    """`owners`, `pods` and `revisions` by owner, `events` by what they are about. JSON values throughout.

    Not compared: `marks`, the UIDs of marked pods, and `ages`, the ReplicaSets of each Deployment, the oldest first.
    """
    owners = list(scene.owners())
    pods, revisions = scene.all("Pod"), scene.all("ControllerRevision")
    numbers = {labels(each).get(HASH, ""): int(each["revision"]) for each in revisions}
    naming = scene.naming
    titles = {owner["metadata"]["uid"]: f"{owner['kind']}/{naming.of(owner['metadata']['name'])}" for owner in owners}
    named = [(titles[owner["metadata"]["uid"]], owner) for owner in owners]
    groups = [*named, (NO_OWNER, None)]
    return {
        "owners": {title: _owner(owner, naming) for title, owner in named},
        "pods": {
            title: _many(_pod(each, numbers, naming) for each in _of(pods, owner, owners)) for title, owner in groups
        },
        "revisions": {
            title: _many(_revision(each) for each in _of(revisions, owner, owners)) for title, owner in groups
        },
        "events": {title: _events(scene, owner) for title, owner in named},
        "marks": {
            title: {
                annotated(pod)[MARK]: pod["metadata"]["uid"]
                for pod in _of(pods, owner, owners)
                if MARK in annotated(pod)
            }
            for title, owner in named
        },
        "ages": {
            title: [titles[each["metadata"]["uid"]] for each in _of(scene.all("ReplicaSet"), owner, owners)]
            for title, owner in named
            if owner["kind"] == "Deployment"
        },
    }


def _of(objects: Iterable[Obj], owner: Obj | None, owners: list[Obj]) -> list[Obj]:
    if owner is not None:
        return [each for each in objects if is_owned(each, owner)]
    return [each for each in objects if not any(is_owned(each, one) for one in owners)]


def _many(parts: Iterable[Obj]) -> dict[str, int]:
    """How many there are of each; a description is its own JSON."""
    return dict(Counter(orjson.dumps(part, option=orjson.OPT_SORT_KEYS).decode() for part in parts))


def _owner(owner: Obj, naming: Naming) -> Obj:
    meta, said = owner["metadata"], dict(status(owner))
    conditions = [_condition(each, owner, naming) for each in said.pop("conditions", None) or ()]
    more = {"generation": meta["generation"]}
    if POD_HASH in labels(owner):
        more = _part_of_deployment(owner, naming)
        said["observedGeneration"] = said.get("observedGeneration", 0) == meta["generation"]
    return {
        **more,
        "labels": naming.labelled(labels(owner)),
        "annotations": annotated(owner),
        "finalizers": meta.get("finalizers") or [],
        "status": said,
        "conditions": sorted(conditions),
    }


def _condition(condition: Obj, owner: Obj, naming: Naming) -> list[str]:
    """A ReplicaFailure bears the server's words about a pod, which tell its name and what others use just now."""
    words = owner["kind"] == "Deployment" and condition["type"] != "ReplicaFailure"
    message = [naming.told(condition.get("message", ""))] if words else []
    return [condition["type"], condition["status"], condition.get("reason", ""), *message]


def _part_of_deployment(replicaset: Obj, naming: Naming) -> Obj:
    """What its Deployment decides."""
    spec = replicaset["spec"]
    return {
        "references": _references(replicaset, naming),
        "replicas": spec["replicas"],
        "minReadySeconds": spec.get("minReadySeconds", 0),
        "selector": naming.labelled(spec["selector"]["matchLabels"]),
        "template": template_of(replicaset),
        "template's label": naming.labelled(labels(spec["template"])).get(POD_HASH),
    }


def _references(obj: Obj, naming: Naming) -> list[Obj]:
    return [
        {**{key: value for key, value in each.items() if key != "uid"}, "name": naming.of(each["name"])}
        for each in obj["metadata"].get("ownerReferences") or ()
    ]


def _pod(pod: Obj, numbers: dict[str, int], naming: Naming) -> Obj:
    meta, reference = pod["metadata"], controller(pod)
    is_daemon = reference is not None and reference["kind"] == "DaemonSet"
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {
        "labels": naming.labelled({key: value for key, value in labels(pod).items() if key != HASH}),
        "revision": numbers.get(labels(pod)[HASH], "unknown") if HASH in labels(pod) else None,
        "annotations": annotated(pod),
        "finalizers": meta.get("finalizers") or [],
        "references": _references(pod, naming),
        "phase": phase(pod),
        "ready": is_ready(pod),
        "deleting": is_deleting(pod),
        "assigned": bool(pod["spec"].get("nodeName")),
        "node": target(pod) if is_daemon else None,
        "restarts": [each["restartCount"] for each in status(pod).get("containerStatuses") or ()],
        "spec": spec,
    }


def _revision(revision: Obj) -> Obj:
    meta = revision["metadata"]
    return {
        "number": int(revision["revision"]),
        "data": revision.get("data"),
        "labels": {key: value for key, value in labels(revision).items() if key != HASH},
        "named by its hash": meta["name"].endswith(f"-{labels(revision).get(HASH)}"),
        "annotations": annotated(revision),
        "references": [
            {key: value for key, value in each.items() if key != "uid"} for each in meta.get("ownerReferences") or ()
        ],
    }


def _events(scene: Scene, owner: Obj) -> Obj:
    """How often each reason was told, and how often of that with a message that was told before.

    Who has told 25 things of an object is silent about it (`spam`).
    """
    counts: Counter[str] = Counter()
    again: Counter[str] = Counter()
    steps: dict[str, int] = {}
    total = 0
    for (reason, message), count in scene.told[owner["metadata"]["uid"]].items():
        total += count
        if step := _step(reason, message, scene.naming):
            steps[step] = 1
        else:
            counts[reason] += count
            again[reason] += count - 1
    return {"counts": {**counts, **steps}, "again": dict(+again), "spam": total >= SPAM_BURST}


def _step(reason: str, message: str, naming: Naming) -> str:
    """Of an event about a resized ReplicaSet: which, and whether up or down. Empty for other events."""
    found = _STEP.match(message) if reason == SCALED else None
    return f"{reason} {found[1]} {naming.of(found[2])}" if found else ""
