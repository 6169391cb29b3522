"""Snapshots for the tests of the comparer, made of objects as a server shows them."""

from __future__ import annotations

from typing import Any

from tests.differential.reading import POD_HASH, REVISION
from tests.differential.scene import Scene
from tests.differential.snapshot import Snapshot, take

Obj = dict[str, Any]
_BORN = "2026-01-02T03:04:05Z"


def reference(kind: str, name: str) -> Obj:
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    flags = {"controller": True, "blockOwnerDeletion": True}
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", **flags}


def pod(name: str, owner: Obj | None, **about: Any) -> Obj:
    """`about`: labels, annotations, phase, ready, node, restarts, finalizers, deleting, pinned (to a node)."""
    meta: Obj = {"name": name, "uid": f"uid-{name}", "creationTimestamp": _BORN, "labels": about.get("labels", {})}
    for field in ("annotations", "finalizers"):
        if about.get(field):
            meta[field] = about[field]
    if owner:
        meta["ownerReferences"] = [dict(owner)]
    if about.get("deleting"):
        meta["deletionTimestamp"] = _BORN
    spec: Obj = {"nodeName": about.get("node", "n"), "containers": [{"name": "c", "image": about.get("image", "i:1")}]}
    if about.get("pinned"):
        fields = [{"key": "metadata.name", "operator": "In", "values": [about["pinned"]]}]
        required = {"nodeSelectorTerms": [{"matchFields": fields}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    ready = "True" if about.get("ready", True) else "False"
    said = {
        "phase": about.get("phase", "Running"),
        "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": [{"restartCount": about.get("restarts", 0)}],
    }
    return {"metadata": meta, "spec": spec, "status": said}


def owner(kind: str, name: str, status: Obj, **spec: Any) -> Obj:
    meta = {"name": name, "uid": f"uid-{name}", "creationTimestamp": _BORN, "generation": 1, "labels": {"app": name}}
    if kind == "DaemonSet":
        meta["annotations"] = {"deprecated.daemonset.template.generation": "1"}
    return {"metadata": meta, "spec": spec, "status": status}


def replicaset(name: str, image: str, status: Obj | None = None, **about: Any) -> Obj:
    """Made by the Deployment whose name stands before the last hyphen, the hash behind. `about`: replicas, revision."""
    deployment, _, digest = name.rpartition("-")
    pairs = {"app": deployment, POD_HASH: digest}
    template = {"metadata": {"labels": dict(pairs)}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"replicas": about.get("replicas", 0), "selector": {"matchLabels": dict(pairs)}, "template": template}
    made = owner("ReplicaSet", name, {"observedGeneration": 1, **(status or {})}, **spec)
    made["metadata"] |= {"labels": dict(pairs), "annotations": {REVISION: str(about.get("revision", 1))}}
    made["metadata"]["ownerReferences"] = [reference("Deployment", deployment)]
    return made


def revision(name: str, owner_name: str, number: int, digest: str, data: Obj | None = None) -> Obj:
    meta = {
        "name": name,
        "uid": f"uid-{name}",
        "creationTimestamp": _BORN,
        "labels": {"app": owner_name, "controller-revision-hash": digest},
        "ownerReferences": [reference("DaemonSet", owner_name)],
    }
    return {"metadata": meta, "revision": number, "data": data or {"spec": number}}


def event(about: str, reason: str, count: int = 1, message: str = "m") -> Obj:
    kind = "Warning" if reason.startswith("Failed") else "Normal"
    return {
        "involvedObject": {"uid": f"uid-{about}"},
        "type": kind,
        "reason": reason,
        "message": message,
        "count": count,
    }


def scene(*objects: tuple[str, Obj], events: tuple[Obj, ...] = ()) -> Scene:
    """Of objects, each with its kind."""
    made = Scene()
    for kind, obj in objects:
        made.put(kind, obj)
    for each in events:
        made.hear(each, None)
    return made


def snapshot(*objects: tuple[str, Obj], events: tuple[Obj, ...] = ()) -> Snapshot:
    """Of objects, each with its kind."""
    return take(scene(*objects, events=events))
