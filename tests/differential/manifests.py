"""The objects that scenarios create."""

from __future__ import annotations

from typing import Any

from oarlock.cluster.resources import DAEMONSETS, REPLICASETS, REPLICATIONCONTROLLERS, Resource
from tests.differential.scene import DEPLOYMENTS, SCENARIO

Obj = dict[str, Any]
RESOURCES: dict[str, Resource] = {
    each.kind: each for each in (DEPLOYMENTS, REPLICASETS, REPLICATIONCONTROLLERS, DAEMONSETS)
}
COST = "controller.kubernetes.io/pod-deletion-cost"
POOL = "pool"
"""Label of nodes: `replicas` or `daemons`. Pods of ReplicaSets stay where nothing happens to nodes by chance."""


def template(scenario: str, app: str, pool: str, about: Obj) -> Obj:
    """`about`: image, labels, annotations, nodes (more of a nodeSelector), tolerate (keys of taints)."""
    spec: Obj = {
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {SCENARIO: scenario, POOL: pool, **about.get("nodes", {})},
        "containers": [{"name": "c", "image": about.get("image", "nginx:1")}],
    }
    if keys := about.get("tolerate"):
        spec["tolerations"] = [{"key": key, "operator": "Exists"} for key in keys]
    meta: Obj = {"labels": {"app": app, **about.get("labels", {})}}
    if about.get("annotations"):
        meta["annotations"] = about["annotations"]
    return {"metadata": meta, "spec": spec}


def owner(scenario: str, kind: str, name: str, about: Obj) -> Obj:
    """A Deployment, ReplicaSet, ReplicationController or DaemonSet. `about`: app, spec, noted (its own annotations),
    and what `template` takes."""
    app = about.get("app", name)
    pool = "daemons" if kind == "DaemonSet" else "replicas"
    pairs = {"app": app}
    return {
        "apiVersion": RESOURCES[kind].api_version,
        "kind": kind,
        "metadata": {"name": name, "labels": {"app": app}, "annotations": about.get("noted", {})},
        "spec": {
            "selector": pairs if kind == "ReplicationController" else {"matchLabels": pairs},
            "template": template(scenario, app, pool, about),
            **about.get("spec", {}),
        },
    }


def bare_pod(scenario: str, name: str, about: Obj) -> Obj:
    """One that nobody owns."""
    made = template(scenario, about["app"], "replicas", about)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**made["metadata"], "name": name}, "spec": made["spec"]}


def node(scenario: str, name: str, pool: str, labels: dict[str, str]) -> Obj:
    """One that simulated kubelets serve."""
    meta = {
        "name": name,
        "labels": {SCENARIO: scenario, POOL: pool, **labels},
        "annotations": {"oarlock.io/simulated": "true"},
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta}


def quota(pods: int) -> Obj:
    spec = {"hard": {"pods": str(pods)}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": spec}
