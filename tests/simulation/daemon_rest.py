"""What a cluster at rest looks like: every DaemonSet on its nodes, in its revision, and its status a recount."""

from __future__ import annotations

from typing import Any

import orjson

from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.objects.model import Pod, controller_of
from tests.simulation.daemon_checker import share, unavailable
from tests.simulation.daemon_cluster import Cluster
from tests.simulation.daemon_docs import Doc
from tests.simulation.daemon_world import FINISHED
from tests.simulation.refusals import Refusals

QUEUE, NODE_QUEUE = "daemonset", "daemonset-node-updates"


def unrest(cluster: Cluster, broker: Any) -> str:
    """What is not as it should be at the end; empty where all is."""
    world = cluster.world
    if world.flights:
        return "requests are under way"
    for queue in (QUEUE, NODE_QUEUE):
        if busy := sorted(broker.busy_keys(queue)) + sorted(broker.delayed_keys(queue)):
            return f"{queue} is busy with {busy}"
    for name in sorted(world.tables["daemonsets"]):
        fault = _set_at_rest(cluster, name) or _record_at_rest(broker, name)
        if fault:
            return f"{name}: {fault}"
    return ""


def _record_at_rest(broker: Any, name: str) -> str:
    left = {
        field: value
        for field, value in broker.recorded(QUEUE, f"default/{name}").items()
        if field.split(" ")[0] in ("create", "delete")
    }
    return f"its record holds {left}" if left else ""


def stalled(cluster: Cluster, refusals: Refusals) -> str:
    """What a set has not done for the nodes for which nothing is refused; empty where that is all."""
    for name in sorted(cluster.world.tables["daemonsets"]):
        owner = cluster.world.tables["daemonsets"][name].obj
        if owner.status.observed_generation != owner.generation:
            return f"{name}: generation {owner.generation}, {owner.status.observed_generation} is observed"
        bad = refusals.undone(name, "create") | refusals.undone(name, "delete")
        where = cluster.desired(name)
        wanted = [node for node, (run, _) in where.items() if run]
        spare = max(unavailable(owner, len(wanted)), share(owner.max_surge, len(wanted))) - len(bad)
        for node in where.keys() - bad:
            run, stay = where[node]
            pods = [pod for pod in cluster.world.pods_of(owner.uid) if pod.target_node == node]
            ended = [pod.name for pod in pods if pod.phase in FINISHED or pod.deleting_ms]
            if ended or not (len(pods) == 1 if run else len(pods) <= stay):
                return f"{name}: {len(pods)} pods on {node}, where {run=} {stay=}, {ended} of them ended"
            template = orjson.loads(cluster.world.tables["daemonsets"][name].raw)["spec"]["template"]
            old = [pod.name for pod in pods if not _is_made_from(cluster, pod, template)]
            if run and old and owner.strategy == "RollingUpdate" and spare > 0:
                return f"{name}: {old} on {node} are old, and {bad} leave room for {spare}"
    return ""


def _is_made_from(cluster: Cluster, pod: Pod, template: Doc) -> bool:
    doc = cluster.world.tables["pods"][pod.name].doc
    return bool(doc["spec"].get("containers") == template["spec"]["containers"])


def _set_at_rest(cluster: Cluster, name: str) -> str:
    world, stored = cluster.world, cluster.world.tables["daemonsets"][name]
    owner = stored.obj
    where = cluster.desired(name)
    pods: dict[str, list[Pod]] = {}
    for pod in world.pods_of(owner.uid):
        if pod.labels.get("app") == name:
            pods.setdefault(pod.target_node, []).append(pod)
        else:
            return f"{pod.name} is not let go"
    for node, (run, stay) in where.items():
        bad = [each.name for each in pods.get(node, ()) if each.phase in FINISHED or each.deleting_ms]
        if bad:
            return f"{bad} on {node} have ended"
        count = len(pods.get(node, ()))
        if not (count == 1 if run else count <= stay):
            return f"{count} pods on {node}, where {run=} {stay=}"
    if strangers := pods.keys() - where.keys():
        return f"pods on {strangers}, which are gone"
    orphans = [
        pod.name
        for pod in world.pods
        if controller_of(pod) is None and pod.labels.get("app") == name and not pod.deleting_ms
    ]
    if orphans:
        return f"{orphans} are not adopted"
    return _revisions_at_rest(cluster, owner, pods) or _status_at_rest(owner, where, pods, cluster)


def _revisions_at_rest(cluster: Cluster, owner: Any, pods: dict[str, list[Pod]]) -> str:
    mine = [
        stored.obj
        for stored in cluster.world.tables["controllerrevisions"].values()
        if (ref := controller_of(stored.obj)) is not None and ref.uid == owner.uid
    ]
    same = [each for each in mine if each.digest == owner.template_digest]
    if len(same) != 1:
        foreign = [
            stored.obj
            for stored in cluster.world.tables["controllerrevisions"].values()
            if stored.obj.digest == owner.template_digest
        ]
        return f"{len(same)} revisions hold its template, {len(foreign)} of anybody"
    (current,) = same
    if any(each.revision >= current.revision for each in mine if each is not current):
        return f"{current.name} is not the latest"
    bears = {pod.labels.get(HASH_LABEL, "") for each in pods.values() for pod in each}
    if owner.strategy == "RollingUpdate":
        where = cluster.desired(owner.name)
        number = owner.template_generation
        for node, (pod, *_) in pods.items():
            updated = pod.labels.get(HASH_LABEL) == current.hash
            updated = updated or (number is not None and pod.labels.get("pod-template-generation") == str(number))
            if where[node][0] and not updated:
                return f"{pod.name} is of {pod.labels.get(HASH_LABEL)}, now is {current.hash}"
    idle = [each for each in mine if each is not current and each.hash not in bears]
    if len(mine) - 1 > owner.revision_history_limit and idle:
        return f"{len(mine) - 1} old revisions, {len(idle)} of no use, {owner.revision_history_limit} may be kept"
    return ""


def _status_at_rest(
    owner: Any, where: dict[str, tuple[bool, bool]], pods: dict[str, list[Pod]], cluster: Cluster
) -> str:
    status = owner.status
    if status.observed_generation != owner.generation:
        return f"generation {owner.generation}, {status.observed_generation} is observed"
    desired = sum(run for run, _ in where.values())
    misscheduled = sum(node in pods for node, (run, _) in where.items() if not run)
    there = [pods[node][0] for node, (run, _) in where.items() if run and node in pods]
    (current,) = (
        stored.obj
        for stored in cluster.world.tables["controllerrevisions"].values()
        if (ref := controller_of(stored.obj)) is not None
        and ref.uid == owner.uid
        and stored.obj.digest == owner.template_digest
    )
    number = owner.template_generation
    updated = sum(
        pod.labels.get(HASH_LABEL) == current.hash
        or (number is not None and pod.labels.get("pod-template-generation") == str(number))
        for pod in there
    )
    ready = sum(pod.ready for pod in there)
    want = (desired, len(there), misscheduled, ready, updated, ready, desired - ready)
    have = (
        status.desired,
        status.current,
        status.misscheduled,
        status.ready,
        status.updated,
        status.available,
        status.unavailable,
    )
    return "" if want == have else f"its status says {have}, it is {want}"
