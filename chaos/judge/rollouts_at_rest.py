"""Whether a Deployment is as it should be: one ReplicaSet has all pods, and the status says so. And what it may have
on the way there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from oarlock.chaos.judge.evidence.sightings import DeploymentSeen, OwnerSeen, PodSeen


class Limits(NamedTuple):
    """``most`` active pods; ``fewest`` available ones that an update may leave; ``recreates``: old ones go first."""

    most: int
    fewest: int
    recreates: bool


def limits_of(seen: DeploymentSeen) -> Limits:
    """Written from the API's words alone: maxSurge is rounded up, maxUnavailable down; with both at 0 one may lack."""
    if seen.strategy != "RollingUpdate":
        return Limits(seen.replicas, 0, True)
    surge = _share(seen.surge, seen.replicas, up=True)
    unavailable = _share(seen.unavailable, seen.replicas, up=False)
    if surge == unavailable == 0:
        unavailable = 1
    return Limits(seen.replicas + surge, max(0, seen.replicas - unavailable), False)


def _share(text: str, of: int, *, up: bool) -> int:
    if not text.endswith("%"):
        return int(text or 0)
    hundredths = int(text[:-1]) * of
    return -(-hundredths // 100) if up else hundredths // 100


def lingers(pod: PodSeen) -> bool:
    """Whether it is there and has not come to its end, even if it is ending."""
    return not pod.gone and pod.phase not in ("Succeeded", "Failed")


def why_not_at_rest(seen: DeploymentSeen, sets: Collection[OwnerSeen], pods: Collection[PodSeen]) -> str:
    """The first thing that is wrong, "" where all is well. ``sets``, ``pods``: all that are there and are its own."""
    if seen.gone or seen.deleting:
        return "it is being deleted"
    if seen.observed != seen.generation:
        return f"status is of generation {seen.observed}, not {seen.generation}"
    if seen.paused:
        return "it is paused"
    found = [each for each in sets if each.digest == seen.digest]
    if len(found) != 1:
        return f"{len(found)} ReplicaSets hold its template"
    new = found[0]
    if new.replicas != seen.replicas:
        return f"its ReplicaSet asks for {new.replicas} pods, not {seen.replicas}"
    return _wrong_old(seen, new, sets) or _wrong_pods(seen, new, pods) or _wrong_status(seen)


def _wrong_old(seen: DeploymentSeen, new: OwnerSeen, sets: Collection[OwnerSeen]) -> str:
    old = [each for each in sets if each is not new]
    for each in old:
        if each.replicas:
            return f"the old {each.task} asks for {each.replicas} pods"
    if len(old) > seen.history:
        return f"{len(old)} old ReplicaSets, and {seen.history} may be left"
    return ""


def _wrong_pods(seen: DeploymentSeen, new: OwnerSeen, pods: Collection[PodSeen]) -> str:
    there = [pod for pod in pods if lingers(pod)]
    for pod in there:
        if pod.owner != new.uid:
            return f"pod {pod.name} is of an old ReplicaSet"
        if pod.deleting or not pod.ready:
            return f"pod {pod.name} is not ready"
    return "" if len(there) == seen.replicas else f"{len(there)} pods, not {seen.replicas}"


def _wrong_status(seen: DeploymentSeen) -> str:
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    for name, says, is_so in zip(names, seen.said, (*[seen.replicas] * 4, 0), strict=True):
        if says != is_so:
            return f"status says {name} {says}, and it is {is_so}"
    return ""
