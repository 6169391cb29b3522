"""The status of a DaemonSet: what it should say, when it is to be written, and the request that writes it.

Counts are those from before the turn's own creates and deletes; their effect shows in a later turn. Upstream:
`pkg/controller/daemon/daemon_controller.go` (updateDaemonSetStatus, storeDaemonSetStatus).
"""

from collections.abc import Iterable, Mapping

import msgspec

from oarlock.controllers.daemonset.model import DaemonSet, DaemonSetStatus
from oarlock.controllers.daemonset.podmap import PodMap, is_updated, sort_key
from oarlock.controllers.objects.availability import is_available, next_available_ms
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.objects.status import status_merge_patch
from oarlock.controllers.plan import Plan

_MS_PER_S = 1000


def counts(
    owner: DaemonSet, podmap: PodMap, eligible: Mapping[str, tuple[bool, bool]], revision: str, now_ms: int
) -> DaemonSetStatus:
    """The seven counters for pods as they are at `now_ms`; the other fields are those the owner has.

    `podmap`: without pods that are finished and being deleted. `eligible`: of each node there is, whether the pod
    should run there and whether it may stay; pods on other nodes do not count. Of a node with several pods the first
    in their order counts, in any state: of an old and a new one the old one.
    """
    desired = current = misscheduled = ready = updated = available = 0
    min_ready_seconds, template_generation = owner.min_ready_seconds, owner.template_generation
    for node, (should_run, _) in eligible.items():
        pods = podmap.get(node)
        if not should_run:
            misscheduled += bool(pods)
            continue
        desired += 1
        if not pods:
            continue
        current += 1
        pod = pods[0] if len(pods) == 1 else min(pods, key=sort_key)
        if pod.ready:
            ready += 1
            if not min_ready_seconds or is_available(pod, min_ready_seconds, now_ms):
                available += 1
        if is_updated(pod, revision, template_generation):
            updated += 1
    return DaemonSetStatus(
        desired,
        current,
        misscheduled,
        ready,
        updated,
        available,
        desired - available,
        owner.status.observed_generation,
        owner.status.collision_count,
    )


def status(
    owner: DaemonSet, plan: Plan, error: str, now_ms: int, report_terminating: bool, attempted: bool = True
) -> DaemonSetStatus | None:
    """The status to write, or None when the one there says all of it already or the plan does nothing at all.

    It is `plan.counts` with the generation that the plan has observed, also after a turn that failed. Other kinds need
    `error`, `now_ms`, `report_terminating` and `attempted`: a DaemonSet has no conditions for failures and no count of
    terminating pods, and its decision takes the counts.
    """
    if plan.invalid or plan.counts is None:
        return None
    observed = owner.generation if plan.observed else owner.status.observed_generation
    new: DaemonSetStatus = msgspec.structs.replace(plan.counts, observed_generation=observed)
    return None if new == owner.status else new


def status_patch(owner: DaemonSet, new: DaemonSetStatus, resource_version: str) -> bytes:
    """The request that writes it. Fields that are zero are removed where a typed client leaves them out. Conditions
    and the collision count are not touched.
    """
    fields: dict[str, object] = {
        "currentNumberScheduled": new.current,
        "numberMisscheduled": new.misscheduled,
        "desiredNumberScheduled": new.desired,
        "numberReady": new.ready,
        "observedGeneration": new.observed_generation or None,
        "updatedNumberScheduled": new.updated or None,
        "numberAvailable": new.available or None,
        "numberUnavailable": new.unavailable or None,
    }
    return status_merge_patch(owner.uid, resource_version, fields)


def look_again_ms(
    owner: DaemonSet, pods: Iterable[Pod], status: DaemonSetStatus, now_ms: int, later_ms: int
) -> int | None:
    """Delay after which the owner wants another turn, counted from `later_ms`; None if no time will change it.

    `pods` are those claimed, as they counted at `now_ms`. Each matters, also one that the status does not count: a new
    pod beside an available old one is in no counter, but the old one is deleted when the new one becomes available.
    """
    if owner.min_ready_seconds <= 0:
        return None
    delay_ms = next_available_ms(pods, owner.min_ready_seconds, now_ms, later_ms)
    if delay_ms is None and status.ready != status.available:
        return owner.min_ready_seconds * _MS_PER_S
    return delay_ms
