"""Whether what became of a node is any business of a DaemonSet.

Upstream: `pkg/controller/daemon/daemon_controller.go` (syncNodeUpdate).
"""

from oarlock.controllers.scheduling.eligibility import Eligibility
from oarlock.controllers.scheduling.model import Node


def concerned(node: Node, daemonset_status_misscheduled: int, eligibility: Eligibility, scheduled: bool) -> bool:
    """Whether a turn of the DaemonSet may find something to do about the node.

    `scheduled`: a pod of the DaemonSet is bound to it, in whatever state; `daemonset_status_misscheduled`: its
    status.numberMisscheduled. Without a pod: one is missing. With one: it should not be there, or it may have been
    cured of that. Upstream lets the pod that may stay and would not be created again wait for the next turn to be
    counted as misscheduled; here the status follows at once.
    """
    should_run, _ = eligibility.eligible(node)
    if not scheduled:
        return should_run
    return not should_run or daemonset_status_misscheduled > 0
