"""Whether a side has come to rest, by definite signs. Pure.

That nothing changes for a while is asked for besides; these say that there is nothing left to wait for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.differential import quiet_rollouts
from tests.differential.reading import (
    ENDED,
    NEVER_READY,
    annotated,
    comes,
    is_active,
    is_deleting,
    is_owned,
    is_ready,
    is_unpullable,
    labels,
    phase,
    selector,
    selects,
    status,
    stays,
    target,
)
from tests.differential.scene import OWNERS, REFUSED, Scene
from tests.differential.snapshot import SPAM_BURST

Obj = dict[str, Any]
LONG_S = 60
"""Pods of an owner with more minReadySeconds do not become available within a scenario."""


def unsettled(scene: Scene, *, taints_wake: bool = True) -> str:
    """What there is still to wait for, in words; empty when there is nothing. `taints_wake`: whether a DaemonSet's
    status follows a taint that lets its pod stay."""
    return next(_reasons(scene, taints_wake), "")


def _reasons(scene: Scene, taints_wake: bool) -> Iterator[str]:
    pods, nodes = scene.all("Pod"), scene.all("Node")
    owners = list(scene.owners())
    yield from _of_references(scene, pods, owners)
    for node in nodes:
        if any(taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints") or ()):
            yield f"node {node['metadata']['name']} is not ready yet"
    for pod in pods:
        yield from _of_pod(pod, scene)
    room = _room(scene, pods)
    for owner in owners:
        name = f"{owner['kind']} {owner['metadata']['name']}"
        about = {"is_refused": _is_refused(scene, owner), "taints_wake": taints_wake}
        found = (
            _of_deployment(owner, owners, pods, scene)
            if owner["kind"] == "Deployment"
            else _of_owner(owner, owners, pods, nodes, room, **about)
        )
        for reason in found:
            yield f"{name}: {reason}"


def _room(scene: Scene, pods: list[Obj]) -> int | None:
    """For how many pods more there is quota; None where there is none. Those on their way out still count."""
    quota = scene.get("ResourceQuota", "quota")
    if quota is None:
        return None
    return int(quota["spec"]["hard"]["pods"]) - sum(phase(pod) not in ENDED for pod in pods)


def _is_refused(scene: Scene, owner: Obj) -> bool:
    """Whether an event tells of a refused create, or none can, after all that were told."""
    told = scene.told[owner["metadata"]["uid"]]
    return told.total() >= SPAM_BURST or any(reason == REFUSED for reason, _ in told)


def _of_references(scene: Scene, pods: list[Obj], owners: list[Obj]) -> Iterator[str]:
    """What the garbage collector has still to do."""
    living = {owner["metadata"]["uid"] for owner in owners}
    kinds = {resource.kind for resource in OWNERS}
    for obj in (*pods, *scene.all("ReplicaSet"), *scene.all("ControllerRevision")):
        if is_deleting(obj):
            continue  # a finalizer holds it
        for reference in obj["metadata"].get("ownerReferences") or ():
            if reference["kind"] in kinds and reference["uid"] not in living:
                yield f"{obj['metadata']['name']} belongs to an owner that is gone"


def _of_pod(pod: Obj, scene: Scene) -> Iterator[str]:
    name = pod["metadata"]["name"]
    if is_deleting(pod):
        if not pod["metadata"].get("finalizers"):
            yield f"pod {name} is being deleted"
        return
    node_name = pod["spec"].get("nodeName")
    if not node_name:
        if not any(each["status"] == "False" for each in status(pod).get("conditions") or ()):
            yield f"pod {name} was not looked at by a scheduler"
        elif any(_takes(each, pod) for each in scene.all("Node")):
            yield f"pod {name} is to be bound"
        return
    node = scene.get("Node", node_name)
    if node is None:
        yield f"pod {name} is on a node that is gone"
    elif phase(pod) in ("", "Pending") and not is_unpullable(pod):
        yield f"pod {name} has not started"
    elif phase(pod) == "Running" and is_ready(pod) is (annotated(pod).get(NEVER_READY) == "true"):
        yield f"pod {name} is to change its readiness"


def _takes(node: Obj, pod: Obj) -> bool:
    is_daemon = bool(target(pod))
    if is_daemon and target(pod) != node["metadata"]["name"]:
        return False
    return comes(pod, node) and (is_daemon or not node["spec"].get("unschedulable"))


def _of_deployment(deployment: Obj, owners: list[Obj], pods: list[Obj], scene: Scene) -> Iterator[str]:
    if _is_unseen(deployment):
        yield "is being deleted, or its generation is not observed"
        return
    is_claimant = _only_claimant(deployment, owners)
    yield from quiet_rollouts.reasons(deployment, scene.all("ReplicaSet"), pods, is_claimant=is_claimant)


def _is_unseen(owner: Obj) -> bool:
    return is_deleting(owner) or status(owner).get("observedGeneration", 0) != owner["metadata"]["generation"]


def _of_owner(
    owner: Obj, owners: list[Obj], pods: list[Obj], nodes: list[Obj], room: int | None, **about: bool
) -> Iterator[str]:
    if is_deleting(owner):
        yield "is being deleted"
        return
    if status(owner).get("observedGeneration", 0) != owner["metadata"]["generation"]:
        yield "its generation is not observed"
    pairs = selector(owner)
    is_claimant = _only_claimant(owner, owners)
    for pod in filter(is_active, pods):
        if is_owned(pod, owner) and not selects(pairs, pod):
            yield f"pod {pod['metadata']['name']} is to be released"
        if is_claimant and selects(pairs, pod) and not pod["metadata"].get("ownerReferences"):
            yield f"pod {pod['metadata']['name']} is to be adopted"
    owned = [pod for pod in pods if is_owned(pod, owner)]
    if owner["kind"] == "DaemonSet":
        yield from _of_daemonset(owner, owned, nodes, has_quota=room is not None, **about)
    else:
        yield from _of_replicas(owner, [pod for pod in owned if is_active(pod)], room)


def _only_claimant(owner: Obj, owners: list[Obj]) -> bool:
    """Of those that look for the same kind."""
    rivals = [each for each in owners if (each["kind"] == "Deployment") == (owner["kind"] == "Deployment")]
    return sum(selector(each) == selector(owner) for each in rivals) == 1


def _of_replicas(owner: Obj, active: list[Obj], room: int | None) -> Iterator[str]:
    said = status(owner)
    short = owner["spec"]["replicas"] - len(active)
    failing = any(each["type"] == "ReplicaFailure" for each in said.get("conditions") or ())
    no_room = (
        room is not None and room <= 0
    )  # below 0 where pods were let in before the server had counted those before them
    if short and not (short > 0 and no_room and failing):
        yield f"{len(active)} pods of {owner['spec']['replicas']}"
    if failing and room is None:
        yield "a failure that is over is still told"
    labelled = sum(selects(labels(owner["spec"]["template"]), pod) for pod in active)
    counts = [len(active), sum(map(is_ready, active)), labelled]
    if [said.get(name, 0) for name in ("replicas", "readyReplicas", "fullyLabeledReplicas")] != counts:
        yield f"its status does not say {counts}"
    if owner["spec"].get("minReadySeconds", 0) < LONG_S and said.get("availableReplicas", 0) != counts[1]:
        yield "pods are to become available"


def _of_daemonset(
    owner: Obj, owned: list[Obj], nodes: list[Obj], *, has_quota: bool, is_refused: bool, taints_wake: bool
) -> Iterator[str]:
    template, said = owner["spec"]["template"], status(owner)
    there = {target(pod): pod for pod in owned}
    on_node = Counter(target(pod) for pod in owned if not is_deleting(pod))
    wanted = [node["metadata"]["name"] for node in nodes if comes(template, node)]
    for node in nodes:
        name = node["metadata"]["name"]
        if on_node[name] > 1:
            yield f"{on_node[name]} pods on {name}"
        if on_node[name] and not stays(template, node):
            yield f"a pod on {name}, where none should be"
    missing = [name for name in wanted if name not in there]
    if missing and not has_quota:
        yield f"no pod on {missing[0]}"
    if any(phase(pod) == "Failed" and not is_deleting(pod) for pod in owned):
        yield "a failed pod is to be replaced"
    if missing and has_quota:
        if not is_refused:
            yield f"nobody was told that there is no pod on {missing[0]}"
        return  # what the status says then is up to the controller
    unwanted = sum(bool(on_node[node["metadata"]["name"]]) and not comes(template, node) for node in nodes)
    if not taints_wake and said.get("numberMisscheduled", 0) != unwanted:
        return  # the status is from before a taint came or went
    desired = said.get("desiredNumberScheduled", 0)
    if desired != len(wanted):
        yield f"its status does not say {len(wanted)} desired"
    if said.get("currentNumberScheduled", 0) != len(wanted) - len(missing):
        yield f"its status does not say {len(wanted) - len(missing)} current"
    ready = sum(is_ready(pod) and target(pod) in wanted for pod in owned)
    if said.get("numberReady", 0) != ready:
        yield f"its status does not say {ready} ready"
    available = said.get("numberAvailable", 0)
    if owner["spec"].get("minReadySeconds", 0) < LONG_S and available != ready:
        yield "pods are to become available"
    strategy = owner["spec"]["updateStrategy"]
    if strategy["type"] == "RollingUpdate" and said.get("updatedNumberScheduled", 0) < desired - len(missing):
        rolling = strategy["rollingUpdate"]
        limit = max(_limit(rolling[name], desired) for name in ("maxUnavailable", "maxSurge") if name in rolling)
        if desired - available < limit:
            yield "old pods are to be replaced"


def _limit(said: int | str, desired: int) -> int:
    if isinstance(said, int):
        return said
    return math.ceil(int(said.rstrip("%")) * desired / 100)
