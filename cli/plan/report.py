"""The plan of one owner, from what was read to facts: the JSON of `oarlock plan`."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import orjson

from oarlock.cli.plan.admission import pod_admission
from oarlock.cli.plan.changes import changes
from oarlock.cli.plan.cluster_copy import ClusterCopy
from oarlock.cli.plan.course import Course, PlannedTime, Played
from oarlock.cli.plan.family import Family
from oarlock.cli.plan.live import LiveCluster, Read, resources_read
from oarlock.cli.plan.reasons import why_unfit
from oarlock.cli.plan.wanted import Wanted, wanted
from oarlock.cli.plan.warnings import warnings
from oarlock.controllers.registry import WATCHED
from oarlock.sandbox.manifests.checks import Item

Obj = dict[str, Any]


def plan_of(cluster: LiveCluster, item: Item, where: str, steps_max: int, now_ms: int) -> Obj:
    """Everything about one document. ``where``: names it in messages. ``now_ms``: unix time.

    Raises InputProblem and NotDone, as the reads and the dry runs do.
    """
    kind = item.kind.name
    read = cluster.read(kind, item.namespace, item.name)
    want = wanted(cluster, item, where, read.live)
    family, played = _played(kind, item, read, want, steps_max, now_ms)
    changed = changes(read.live, want.obj) if read.live is not None else []
    admission = pod_admission(cluster, item.namespace, played.first_pod, want.not_asked)
    action = "create" if read.live is None else "change" if changed else "none"
    return {
        "object": {"kind": kind, "namespace": item.namespace, "name": item.name},
        "where": where,
        "action": action,
        "would_change": bool(action != "none" or played.acts),
        "asked": not want.not_asked,
        "not_asked_because": want.not_asked,
        "changes": [each._asdict() for each in changed],
        "template_changes": any(each.field.startswith("spec.template.") for each in changed),
        "steps": [_step_facts(each) for each in played.steps],
        "pods_before": played.pods_before,
        "available_before": played.available_before,
        "pods_max": played.pods_max,
        "available_min": played.available_min,
        "waits_ms": played.lasts_ms,
        "rests": played.rests,
        "ends": _ends(family),
        "nodes": _node_facts(family),
        "pod_admission": admission,
        "warnings": warnings(item, read, want, family, played),
    }


def _played(kind: str, item: Item, read: Read, want: Wanted, steps_max: int, now_ms: int) -> tuple[Family, Played]:
    clock = PlannedTime(now_ms)
    copy = ClusterCopy(clock.wall_ms)
    owners, *others = resources_read(kind)
    copy.load(owners, [want.obj])
    owner = WATCHED[owners].from_json(orjson.dumps(copy.of(owners)[0]))[1]
    for resource in others:
        copy.load(resource, read.lists[resource])
    family = Family(kind, owner)
    return family, Course(copy, family, resources_read(kind), clock).play(steps_max)


def _step_facts(step: Any) -> Obj:
    return {
        "acts": [act.facts() for act in step.acts],
        "pods_get_ready": step.ready,
        "pods_go": step.gone,
        "pods": step.pods,
        "available": step.available,
    }


def _ends(family: Family) -> Obj:
    pods, available = family.counts
    facts: Obj = {"pods": pods, "available": available}
    if family.replicasets:
        facts["replicasets"] = [
            {
                "name": each.name,
                "revision": each.annotations.get("deployment.kubernetes.io/revision", ""),
                "replicas": each.replicas,
            }
            for each in sorted(family.replicasets.values(), key=lambda each: (-each.replicas, each.name))
        ]
    return facts


def _node_facts(family: Family) -> Obj:
    """Of a DaemonSet: how many nodes are to have a pod, and why the others are not."""
    if family.daemonset is None:
        return {}
    skipped: dict[str, list[str]] = defaultdict(list)
    for name, node in sorted(family.nodes.items()):
        if why := why_unfit(family.daemonset.placement, node):
            skipped[why].append(name)
    left_out = sum(map(len, skipped.values()))
    return {
        "fit": len(family.nodes) - left_out,
        "skipped": [{"why": why, "nodes": names} for why, names in skipped.items()],
    }
