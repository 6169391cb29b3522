"""In which state of its life a pod is, for counting.

Upstream: `pkg/controller/controller_utils.go` (IsPodActive, IsPodTerminating, FilterActivePods and
relatives).
"""

from collections.abc import Iterable

from oarlock.controllers.objects.model import FINISHED_PHASES, Pod


def is_finished(pod: Pod) -> bool:
    """Phase Succeeded or Failed: it will not run again."""
    return pod.phase in FINISHED_PHASES


def is_active(pod: Pod) -> bool:
    """Neither finished nor being deleted; a pod without a phase yet is active."""
    return not pod.deleting_ms and pod.phase not in FINISHED_PHASES


def active_pods(pods: Iterable[Pod]) -> list[Pod]:
    """The active ones, in the order given."""
    return [pod for pod in pods if not pod.deleting_ms and pod.phase not in FINISHED_PHASES]
