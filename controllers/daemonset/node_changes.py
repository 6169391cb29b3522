"""Which DaemonSets a change of a node concerns.

Upstream: `pkg/controller/daemon/daemon_controller.go` (syncNodeUpdate). Upstream does nothing when a node goes; here
the DaemonSets with pods on it are woken, so that their status follows at once.
"""

from collections.abc import Sequence

from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.objects.model import Pod, controller_of
from oarlock.controllers.scheduling.eligibility import Eligibility, eligibility_of
from oarlock.controllers.scheduling.model import Node

KIND = "DaemonSet"


def daemonsets_concerned(
    node_name: str, node: Node | None, pods: Sequence[Pod], daemonsets: Sequence[DaemonSet]
) -> list[str]:
    """Keys of the DaemonSets to look at. `node` None: it has gone. `pods`: those on it or pinned to it.

    Pods are matched to DaemonSets by UID: a pod of a predecessor, or of another API group's DaemonSet of that name,
    does not show that one is present. Upstream compares the names only.
    """
    refs = [(pod.namespace, ref) for pod in pods if (ref := controller_of(pod)) is not None and ref.kind == KIND]
    if node is None:
        return sorted({f"{namespace}/{ref.name}" for namespace, ref in refs})
    uids = {ref.uid for _, ref in refs}
    return [
        each.key
        for each in daemonsets
        if concerned(node, each.status.misscheduled, eligibility_of(each.placement), each.uid in uids)
    ]


def concerned(node: Node, daemonset_status_misscheduled: int, eligibility: Eligibility, scheduled: bool) -> bool:
    """Whether a turn of the DaemonSet may find something to do about the node.

    `scheduled`: a pod of the DaemonSet is bound to it, in whatever state; `daemonset_status_misscheduled`: its
    status.numberMisscheduled. Without a pod: one is missing. With one: it should not be there, or should be there
    again. A pod that may stay although none would be created now counts as misscheduled: upstream counts it in the next
    turn that comes, here the status follows at once.
    """
    should_run, _ = eligibility.eligible(node)
    if not scheduled:
        return should_run
    return not should_run or daemonset_status_misscheduled > 0
