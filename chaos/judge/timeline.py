"""What happened around a violation: the evidence of one owner from all recorders, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from oarlock.chaos.judge.checker import Evidence
from oarlock.chaos.judge.evidence.changes import RESOURCE_OF_QUEUE
from oarlock.chaos.judge.evidence.evidence import Attached, EpochBegun, Lost, Opened, Violation, Watermark
from oarlock.chaos.judge.evidence.sightings import (
    DAEMONS,
    DaemonSetSeen,
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
    task = violation.task
    lines = [
        (at_s, text)
        for part in (_trace(evidence, task), _requests(evidence, task), _history(evidence, task), _blows(evidence))
        for at_s, text in part
        if from_s <= at_s <= to_s
    ]
    lines.sort(key=lambda line: line[0])
    return [f"{clock(at_s)}  {text}" for at_s, text in lines[-lines_max:]]


def _trace(evidence: Evidence, task: str) -> Iterator[tuple[float, str]]:
    for step in evidence.trace:
        if isinstance(step, Watermark):
            continue
        everybody = isinstance(step, Attached | Lost | EpochBegun | Opened)
        if everybody or getattr(step, "task", "") == task:
            shown = ", ".join(
                f"{name}={value}" for name, value in step._asdict().items() if name not in ("at_s", "task") and value
            )
            yield step.at_s, f"redis    {type(step).__name__.lower()} {shown}"


def _requests(evidence: Evidence, task: str) -> Iterator[tuple[float, str]]:
    queue, _, place = task.partition(":")
    namespace, _, owner = place.partition("/")
    names = {
        seen.name for seen in evidence.history if isinstance(seen, PodSeen) and seen.task == task
    }  # a delete names no owner
    for each in evidence.requests:
        pod = each.resource.startswith("pods") and (each.task == task or each.name in names)
        about = each.name == owner and each.resource.partition("/")[0] == RESOURCE_OF_QUEUE.get(queue)
        if each.namespace != namespace or not (pod or about):
            continue
        who = "worker" if each.ours else "second fleet" if each.second else "others"
        asked = f" if uid={each.asked_uid} rv={each.asked_rv}" if each.asked_uid else ""
        done = f"{(each.done_s - each.received_s) * 1000:.0f} ms, {'committed' if each.committed else 'nothing done'}"
        fault = f", {each.fault}" if each.fault else ""
        text = f"{each.verb} {each.resource} {each.name}{asked} -> {each.code} rv={each.rv} ({done}{fault})"
        yield each.received_s, f"api      {who}: {text}"


def _history(evidence: Evidence, task: str) -> Iterator[tuple[float, str]]:
    of_daemons = task.startswith(f"{DAEMONS}:")
    for seen in evidence.history:
        concerned = task and getattr(seen, "task", "") == task
        text = _told(seen) if concerned or (of_daemons and isinstance(seen, NodeSeen)) else ""
        if text:
            yield seen.at_s, f"watch    rv={seen.rv} {text}{', gone' if seen.gone else ''}"


def _told(seen: Seen) -> str:
    match seen:
        case OwnerSeen():
            return (
                f"owner {seen.replicas} wanted, generation {seen.generation}, observed {seen.observed},"
                f" status {seen.status_replicas}/{seen.status_ready}{', deleting' if seen.deleting else ''}"
            )
        case DaemonSetSeen():
            return (
                f"owner version {seen.version}, {seen.strategy} unavailable={seen.limit} surge={seen.surge}, generation"
                f" {seen.generation}, observed {seen.observed}, status {seen.desired}/{seen.current}/{seen.ready},"
                f" {seen.updated} updated{', deleting' if seen.deleting else ''}"
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
