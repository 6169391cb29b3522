"""Pods of related owners: they tell which nodes are crowded when victims are chosen.

Related owners have the same controller, typically the ReplicaSets of one Deployment: this one too, and those being
deleted. Upstream: `pkg/controller/replicaset/replica_set.go` (getIndirectlyRelatedPods).
"""

from collections.abc import Iterable

from oarlock.controllers.objects.model import Pod, ReplicaSet, controller_of


def siblings_of(owner: ReplicaSet, others: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The owners in the same namespace under the same controller, the owner included; none without a controller."""
    controller = controller_of(owner)
    if controller is None:
        return []
    return [
        other
        for other in others
        if other.namespace == owner.namespace
        and (ref := controller_of(other)) is not None
        and ref.uid == controller.uid
    ]


def related_pods(siblings: Iterable[ReplicaSet], pods: Iterable[Pod]) -> list[Pod]:
    """The pods that a sibling selects by their labels, of any owner and in any phase. Of several entries of a pod the
    first counts. A sibling with an invalid selector is skipped.
    """
    usable = [s for s in siblings if s.selector is not None and not s.selector.error]
    found: dict[str, Pod] = {}
    for pod in pods:
        if any(
            sibling.namespace == pod.namespace and sibling.selector.matches(pod.labels)  # type: ignore[union-attr]
            for sibling in usable
        ):
            found.setdefault(pod.uid, pod)
    return list(found.values())
