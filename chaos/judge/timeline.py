"""What happened around a violation: the evidence of one owner from all recorders, in the order of time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime

from oarlock.chaos.judge.checker import Evidence
from oarlock.chaos.judge.evidence.changes import RESOURCE_OF_QUEUE
from oarlock.chaos.judge.evidence.evidence import Attached, EpochBegun, Lost, Opened, Violation, Watermark
from oarlock.chaos.judge.evidence.sightings import (
    DAEMONS,
    DaemonSetSeen,
    DeploymentSeen,
    NamespaceSeen,
    NodeSeen,
    OwnerSeen,
    PodSeen,
    RevisionSeen,
    Seen,
)

BEFORE_S, AFTER_S = 8.0, 1.0
LINES_MAX = 120


def clock(at_s: float) -> str:
    """hh:mm:ss.mmm, UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%H:%M:%S.%f")[:-3]


def timeline(evidence: Evidence, violation: Violation, lines_max: int = LINES_MAX) -> list[str]:
    """The lines around a violation; the last ``lines_max`` of them."""
    from_s, to_s = violation.at_s - BEFORE_S, violation.at_s + AFTER_S
    tasks = {violation.task} - {""}
    # What befell a Deployment befell its ReplicaSets and their pods.
    tasks |= {each.task for each in evidence.history if isinstance(each, OwnerSeen) and each.owner_task in tasks}
    lines = [
        (at_s, text)
        for part in (_trace(evidence, tasks), _requests(evidence, tasks), _history(evidence, tasks), _blows(evidence))
        for at_s, text in part
        if from_s <= at_s <= to_s
    ]
    lines.sort(key=lambda line: line[0])
    return [f"{clock(at_s)}  {text}" for at_s, text in lines[-lines_max:]]


def _trace(evidence: Evidence, tasks: Collection[str]) -> Iterator[tuple[float, str]]:
    for step in evidence.trace:
        if isinstance(step, Watermark):
            continue
        everybody = isinstance(step, Attached | Lost | EpochBegun | Opened)
        task = getattr(step, "task", "")
        if everybody or task in tasks:
            shown = ", ".join(
                f"{name}={value}" for name, value in step._asdict().items() if name not in ("at_s", "task") and value
            )
            of = f"{task} " if len(tasks) > 1 and task else ""
            yield step.at_s, f"redis    {type(step).__name__.lower()} {of}{shown}"


def _requests(evidence: Evidence, tasks: Collection[str]) -> Iterator[tuple[float, str]]:
    # A delete names no owner.
    about = {
        ("pods", seen.namespace, seen.name)
        for seen in evidence.history
        if getattr(seen, "task", "") in tasks and isinstance(seen, PodSeen)
    }
    for task in tasks:
        queue, _, place = task.partition(":")
        namespace, _, owner = place.partition("/")
        about.add((RESOURCE_OF_QUEUE.get(queue, ""), namespace, owner))
    for each in evidence.requests:
        named = (each.resource.partition("/")[0], each.namespace, each.name)
        if each.task not in tasks and named not in about:
            continue
        who = "worker" if each.ours else "second fleet" if each.second else "others"
        asked = f" if uid={each.asked_uid} rv={each.asked_rv}" if each.asked_uid else ""
        done = f"{(each.done_s - each.received_s) * 1000:.0f} ms, {'committed' if each.committed else 'nothing done'}"
        fault = f", {each.fault}" if each.fault else ""
        text = f"{each.verb} {each.resource} {each.name}{asked} -> {each.code} rv={each.rv} ({done}{fault})"
        yield each.received_s, f"api      {who}: {text}"


def _history(evidence: Evidence, tasks: Collection[str]) -> Iterator[tuple[float, str]]:
    of_daemons = any(task.startswith(f"{DAEMONS}:") for task in tasks)
    for seen in evidence.history:
        concerned = getattr(seen, "task", "") in tasks
        text = _told(seen) if concerned or (of_daemons and isinstance(seen, NodeSeen)) else ""
        if text:
            yield seen.at_s, f"watch    rv={seen.rv} {text}{', gone' if seen.gone else ''}"


def _told(seen: Seen) -> str:
    match seen:
        case OwnerSeen():
            return (
                f"owner {seen.task.partition('/')[2]} {seen.replicas} wanted, generation {seen.generation}, observed"
                f" {seen.observed}, status {seen.status_replicas}/{seen.status_ready}"
                f"{', deleting' if seen.deleting else ''}"
            )
        case DaemonSetSeen():
            return (
                f"owner version {seen.version}, {seen.strategy} unavailable={seen.limit} surge={seen.surge}, generation"
                f" {seen.generation}, observed {seen.observed}, status {seen.desired}/{seen.current}/{seen.ready},"
                f" {seen.updated} updated{', deleting' if seen.deleting else ''}"
            )
        case DeploymentSeen():
            return (
                f"owner version {seen.version}, {seen.replicas} wanted, {seen.strategy} surge={seen.surge}"
                f" unavailable={seen.unavailable}{', paused' if seen.paused else ''}, generation {seen.generation},"
                f" observed {seen.observed}, status {seen.said}{', deleting' if seen.deleting else ''}"
            )
        case PodSeen():
            place = f" on {seen.target}" if seen.target else ""
            version = f" of version {seen.version}" if seen.version else ""
            state = f"{seen.phase}{', ready' if seen.ready else ''}{', deleting' if seen.deleting else ''}"
            return f"pod {seen.name}{place}{version} {state}"
        case NodeSeen():
            taints = ", ".join(f"{taint.key}:{taint.effect}" for taint in seen.taints)
            labels = ", ".join(f"{key}={value}" for key, value in seen.labels if "/" not in key)
            return f"node {seen.name} labels {labels or 'none'}, taints {taints or 'none'}"
        case RevisionSeen():
            return f"revision {seen.name} number {seen.number}"
        case NamespaceSeen():
            return ""


def _blows(evidence: Evidence) -> Iterator[tuple[float, str]]:
    for blow in evidence.blows:
        yield blow.at_s, f"fault    {blow.kind} pid={blow.pid} {','.join(blow.holders)} {blow.why}".rstrip()
        if blow.until_s:
            yield blow.until_s, f"fault    {blow.kind} over, pid={blow.pid}"
