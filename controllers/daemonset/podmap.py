"""Which pods of a DaemonSet stand on which node, and which of them were made from its present template.

Upstream: `pkg/controller/daemon/daemon_controller.go` (getNodesToDaemonPods, podByCreationTimestampAndPhase),
`pkg/controller/daemon/util/daemonset_util.go` (GetTargetNodeName,
IsPodUpdated).
"""

from collections.abc import Iterable
from typing import TypeAlias

from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.objects.model import FINISHED_PHASES, Pod

GENERATION_LABEL = "pod-template-generation"

PodMap: TypeAlias = dict[str, list[Pod]]
"""Node name -> its pods in the order given; never an empty list."""


def pod_map(pods: Iterable[Pod], include_ended: bool = False) -> PodMap:
    """The pods by the node each is on or, while unassigned, pinned to. A pod with neither is left out.

    `pods` are those claimed. One that is finished *and* being deleted is left out too, unless `include_ended`: a
    finalizer may hold it for ever, and it must not delay its replacement.
    """
    found: PodMap = {}
    for pod in pods:
        if pod.deleting_ms and not include_ended and pod.phase in FINISHED_PHASES:
            continue
        node = pod.node_name or pod.pinned_node
        if node in found:
            found[node].append(pod)
        elif node:
            found[node] = [pod]
    return found


def sort_key(pod: Pod) -> tuple[bool, int, str]:
    """Order among the pods of one node, the one to keep first: assigned before unassigned, then the older, then by
    name.
    """
    return (not pod.node_name, pod.created_ms, pod.name)


def is_updated(pod: Pod, revision: str, template_generation: int | None) -> bool:
    """Whether the pod has the hash label of the current revision, or the number of the current template.

    The number comes from an annotation that older API servers count up; None without it. Pods from before hash labels
    have no other mark. An empty `revision` matches no pod.
    """
    labels = pod.labels
    if revision and labels.get(HASH_LABEL) == revision:
        return True
    return template_generation is not None and labels.get(GENERATION_LABEL) == str(template_generation)
