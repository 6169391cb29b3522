"""What a side shows of a scenario, without names of pods, UIDs and times. Pure.

Pods are told apart by what can be seen on them, and a revision by its number: `hash` labels of one revision are equal
on one side, and the number is what both sides have in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson

from tests.differential.reading import (
    HASH,
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


def take(scene: Scene) -> Snapshot:
    """`owners`, `pods` and `revisions` by owner, `events` by what they are about. JSON values throughout.

    `marks`: the UIDs of marked pods, which are not compared.
    """
    owners = list(scene.owners())
    pods, revisions = scene.all("Pod"), scene.all("ControllerRevision")
    numbers = {labels(each).get(HASH, ""): int(each["revision"]) for each in revisions}
    groups = [*((_title(owner), owner) for owner in owners), (NO_OWNER, None)]
    return {
        "owners": {_title(owner): _owner(owner) for owner in owners},
        "pods": {title: _many(_pod(each, numbers) for each in _of(pods, owner, owners)) for title, owner in groups},
        "revisions": {
            title: _many(_revision(each) for each in _of(revisions, owner, owners)) for title, owner in groups
        },
        "events": {_title(owner): _events(scene, owner) for owner in owners},
        "marks": {
            _title(owner): {
                annotated(pod)[MARK]: pod["metadata"]["uid"]
                for pod in _of(pods, owner, owners)
                if MARK in annotated(pod)
            }
            for owner in owners
        },
    }


def _title(owner: Obj) -> str:
    return f"{owner['kind']}/{owner['metadata']['name']}"


def _of(objects: Iterable[Obj], owner: Obj | None, owners: list[Obj]) -> list[Obj]:
    if owner is not None:
        return [each for each in objects if is_owned(each, owner)]
    return [each for each in objects if not any(is_owned(each, one) for one in owners)]


def _many(parts: Iterable[Obj]) -> dict[str, int]:
    """How many there are of each; a description is its own JSON."""
    return dict(Counter(orjson.dumps(part, option=orjson.OPT_SORT_KEYS).decode() for part in parts))


def _owner(owner: Obj) -> Obj:
    meta, said = owner["metadata"], dict(status(owner))
    conditions = [[each["type"], each["status"], each.get("reason", "")] for each in said.pop("conditions", None) or ()]
    return {
        "generation": meta["generation"],
        "labels": labels(owner),
        "annotations": annotated(owner),
        "finalizers": meta.get("finalizers") or [],
        "status": said,
        "conditions": sorted(conditions),
    }


def _pod(pod: Obj, numbers: dict[str, int]) -> Obj:
    meta, reference = pod["metadata"], controller(pod)
    is_daemon = reference is not None and reference["kind"] == "DaemonSet"
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {
        "labels": {key: value for key, value in labels(pod).items() if key != HASH},
        "revision": numbers.get(labels(pod)[HASH], "unknown") if HASH in labels(pod) else None,
        "annotations": annotated(pod),
        "finalizers": meta.get("finalizers") or [],
        "references": [
            {key: value for key, value in each.items() if key != "uid"} for each in meta.get("ownerReferences") or ()
        ],
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
    for (reason, _), count in scene.told[owner["metadata"]["uid"]].items():
        counts[reason] += count
        again[reason] += count - 1
    return {"counts": dict(counts), "again": dict(+again), "spam": counts.total() >= SPAM_BURST}
