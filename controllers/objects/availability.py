"""When a ready pod counts as available, and when to look at an owner again because of it.

Upstream: `pkg/api/v1/pod/util.go` (IsPodAvailable), `pkg/controller/controller_utils.go` (next availability
check).
"""

from collections.abc import Iterable

from oarlock.controllers.objects.model import Pod, ReplicaSet, ReplicaSetStatus

_MS_PER_S = 1000


def is_available(pod: Pod, min_ready_seconds: int, now_ms: int) -> bool:
    """Ready, and for at least `min_ready_seconds`. With an unknown ready time a pod is available only if it is 0."""
    if not pod.ready:
        return False
    if min_ready_seconds <= 0:
        return True
    return bool(pod.ready_since_ms) and pod.ready_since_ms + min_ready_seconds * _MS_PER_S <= now_ms


def available_in_ms(pod: Pod, min_ready_seconds: int, now_ms: int) -> int | None:
    """How long until a ready pod becomes available; None if it is already, or no time will make it so."""
    if min_ready_seconds <= 0 or not pod.ready or not pod.ready_since_ms:
        return None
    left_ms = pod.ready_since_ms + min_ready_seconds * _MS_PER_S - now_ms
    return left_ms if left_ms > 0 else None


def next_available_ms(pods: Iterable[Pod], min_ready_seconds: int, now_ms: int, later_ms: int) -> int | None:
    """Delay from `later_ms`, at least 0, until the first pod becomes available that was not so at `now_ms`.

    None if no pod will. Between the two moments the turn did something, such as writing the status.
    """
    delays = [left for pod in pods if (left := available_in_ms(pod, min_ready_seconds, now_ms)) is not None]
    return max(0, min(delays) - (later_ms - now_ms)) if delays else None


def look_again_ms(
    owner: ReplicaSet, pods: Iterable[Pod], status: ReplicaSetStatus, now_ms: int, later_ms: int
) -> int | None:
    """Delay after which the owner needs another turn, counted from `later_ms`; None if time alone changes nothing.

    `pods`: those claimed. `status`: the one just computed, at `now_ms`. A turn with a failed create or delete needs it
    too: upstream's handler of pods sets a timer for each pod that gets ready.
    """
    if owner.min_ready_seconds <= 0 or status.ready == status.available:
        return None
    delay_ms = next_available_ms(pods, owner.min_ready_seconds, now_ms, later_ms)
    return owner.min_ready_seconds * _MS_PER_S if delay_ms is None else delay_ms
