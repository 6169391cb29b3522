"""Pods of related owners: they tell which nodes are crowded when victims are chosen.

Related are the owners with the same controller, typically the ReplicaSets of one Deployment, this one
included, also those being deleted. Upstream: `pkg/controller/replicaset/replica_set.go`
(getIndirectlyRelatedPods).
"""

from collections.abc import Iterable

from oarlock.controllers.objects.model import Pod, ReplicaSet, controller_of


def siblings_of(owner: ReplicaSet, others: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The owners in the same namespace under the same controller, itself included; none for an owner
    without one.
    """
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
    """The pods some sibling selects, by labels whoever owns them and in whatever phase, each once: as it
    comes first.

    A sibling whose selector is invalid is passed over.
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
