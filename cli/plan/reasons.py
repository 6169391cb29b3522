"""Why these pods and these nodes, in a few words for people."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from oarlock.controllers.objects.model import Pod
from oarlock.controllers.replicaset.ranking import Key, age_comparison, node_ranks, rank_key, victims
from oarlock.controllers.scheduling.affinity import NodeFilter
from oarlock.controllers.scheduling.eligibility import RUN, eligibility_of
from oarlock.controllers.scheduling.model import Node, Placement
from oarlock.controllers.scheduling.tolerations import NO_EXECUTE, NO_SCHEDULE, tolerations_for_pods, untolerated

ALL_GO = "all go"
ALIKE = "alike, so it may be others"
BY_AGE = "by age: those that stay are older, or have restarted less"


def whys_of_victims(
    doomed: Sequence[Pod], staying: Sequence[Pod], related: Collection[Pod], min_ready_seconds: int, now_ms: int
) -> dict[str, str]:
    """Name of each pod to delete -> by which of the rules it goes before those that stay (controllers/replicaset/
    ranking.py). ``related``: the pods whose number on a node counts.
    """
    if not staying:
        return {pod.name: ALL_GO for pod in doomed}
    ranks = node_ranks(related)
    keys = {pod.name: rank_key(pod, ranks, min_ready_seconds, now_ms) for pod in (*doomed, *staying)}
    first = victims(staying, 1, related, now_ms, min_ready_seconds)[0]  # that would go next
    older = age_comparison(now_ms)
    return {pod.name: _why(pod, first, keys, ranks, older(pod, first)) for pod in doomed}


def _why(pod: Pod, first: Pod, keys: Mapping[str, Key], ranks: Mapping[str, int], by_age: int) -> str:
    both = zip(keys[pod.name], keys[first.name], strict=True)
    rule = next((at for at, (own, other) in enumerate(both) if own != other), len(keys[pod.name]))
    match rule:
        case 0:
            return "it has no node yet"
        case 1:
            return f"its phase is {pod.phase or 'unknown'}"
        case 2:
            return "it is not available yet" if pod.ready else "it is not ready"
        case 3:
            return f"its deletion cost is {pod.deletion_cost}"
        case 4:
            return f"{ranks[pod.node_name]} of the pods are on {pod.node_name}"
        case _:
            return BY_AGE if by_age else ALIKE


def why_unfit(placement: Placement, node: Node) -> str:
    """Why a node gets no daemon pod; empty where it gets one."""
    if eligibility_of(placement).eligible(node) == RUN:
        return ""
    if placement.node_name and placement.node_name != node.name:
        return f"the template names the node {placement.node_name}"
    for label, value in placement.node_selector.items():
        if node.labels.get(label) != value:
            return f"nodeSelector {label}={value}"
    if not NodeFilter(placement).matches(node.labels, node.name):
        return "node affinity"
    tolerations = tolerations_for_pods(placement)
    for effect in (NO_EXECUTE, NO_SCHEDULE):
        for taint in node.taints:
            if untolerated((taint,), tolerations, effect):
                return f"taint {taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
    return "the node is not fit"


def why_daemon_goes(pod: Pod, nodes: Mapping[str, Node], placement: Placement, current: bool) -> str:
    """``current``: whether the pod has the present template."""
    node = nodes.get(pod.target_node)
    if node is None:
        return "its node has gone"
    if pod.phase in ("Failed", "Succeeded"):
        return "it has failed" if pod.phase == "Failed" else "it has ended"
    if not eligibility_of(placement).eligible(node)[1]:
        return why_unfit(placement, node)
    return "another pod of it is on the node" if current else "its template is an earlier one"
