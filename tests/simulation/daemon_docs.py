"""JSON of the objects that the simulation of DaemonSets begins with."""

from __future__ import annotations

import time
from typing import Any

from tests.simulation.world import NAMESPACE

Doc = dict[str, Any]
TAINT = "example.com/reserved"
GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
PLACES = ("anywhere", "blue", "tolerant")
"""Where the pods of a template may go: on every node, on those of the blue pool, also on reserved ones."""


def rfc3339(ms: int) -> str:
    """As the API writes times: whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ms // 1000))


def template(app: str, image: str, place: str = "anywhere") -> Doc:
    """A pod template; the image is all that tells it from another."""
    spec: Doc = {"containers": [{"name": "c", "image": image}]}
    if place == "blue":
        spec["nodeSelector"] = {"pool": "blue"}
    if place == "tolerant":
        spec["tolerations"] = [{"key": TAINT, "operator": "Exists"}]
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def strategy(unavailable: int | str | None, surge: int | str = 0) -> Doc:
    """An update strategy; OnDelete where nothing may be unavailable and nothing surge."""
    if unavailable is None:
        return {"type": "OnDelete"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}


def daemonset(name: str, uid: str, pods: Doc, update: Doc, *, min_ready_s: int, limit: int, numbered: bool) -> Doc:
    """A DaemonSet. ``limit``: of old revisions. ``numbered``: with the annotation that API servers count up."""
    annotations = {GENERATION_ANNOTATION: "1"} if numbered else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid,
            "generation": 1,
            "annotations": annotations,
        },
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": pods,
            "updateStrategy": update,
            "minReadySeconds": min_ready_s,
            "revisionHistoryLimit": limit,
        },
        "status": {},
    }


def node(name: str, uid: str, pool: str) -> Doc:
    return {"metadata": {"name": name, "uid": uid, "labels": {"pool": pool}}, "spec": {"taints": []}}


def pod(name: str, uid: str, app: str, on: str, owner: Doc | None) -> Doc:
    """A pod that others made, running on a node; an orphan where there is no owner."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid,
            "labels": {"app": app},
            "ownerReferences": [ref_to(owner)] if owner is not None else [],
        },
        "spec": {"nodeName": on},
        "status": {"phase": "Running"},
    }


def ref_to(owner: Doc) -> Doc:
    meta = owner["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def fits(where: Doc, pods: Doc) -> tuple[bool, bool]:
    """Of a node and a template: whether a pod should run there, and whether one may stay. Told apart from the
    product's own judgement, for the few templates and taints there are here.
    """
    spec = pods["spec"]
    if any(where["metadata"]["labels"].get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False, False
    tolerated = {toleration["key"] for toleration in spec.get("tolerations", ())}
    effects = {taint["effect"] for taint in where["spec"]["taints"] if taint["key"] not in tolerated}
    if "NoExecute" in effects:
        return False, False
    return "NoSchedule" not in effects, True
