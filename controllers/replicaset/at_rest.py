"""The decision of a ReplicaSet that has nothing to do about its pods, made from their counts."""

from collections.abc import Mapping

from oarlock.controllers.objects.model import ReplicaSet
from oarlock.controllers.plan import Plan
from oarlock.controllers.pods.classes import FINISHED, READY, TERMINATING, read_class


def at_rest(owner: ReplicaSet, counts: Mapping[bytes, int]) -> Plan | None:
    """The plan that `decide` would make of these pods, with what the status is made from in place of the pods. None
    where it has to see them: not so many are active as are asked for, one is to be released, or time matters.

    `counts`: of all pods that the owner controls, by class. There is no orphan to adopt, no write is open, and the
    cache has passed all writes of ours.
    """
    selector = owner.selector
    if selector is None or selector.error or owner.min_ready_seconds or owner.deleting_ms:
        return None
    template_labels = owner.template_labels.items()
    replicas = fully_labeled = ready = terminating = 0
    for text, count in counts.items():
        each = read_class(text)
        if each is None or each.namespace != owner.namespace or not selector.matches(each.labels):
            return None
        if each.kind == TERMINATING:
            terminating += count
        elif each.kind != FINISHED:
            replicas += count
            fully_labeled += count if template_labels <= each.labels.items() else 0
            ready += count if each.kind == READY else 0
    if replicas != owner.replicas:
        return None
    return Plan(terminating=terminating, counts=(replicas, fully_labeled, ready, ready))
