"""On which nodes a DaemonSet's pods belong.

Upstream: `pkg/controller/daemon/daemon_controller.go` (NodeShouldRunDaemonPod, predicates). What a node has left, its
conditions, spec.unschedulable, and affinity to pods play no part: those are the scheduler's and the kubelet's.
"""

from functools import lru_cache

import msgspec

from oarlock.controllers.scheduling.affinity import NodeFilter
from oarlock.controllers.scheduling.model import Node, Placement, Taint
from oarlock.controllers.scheduling.tolerations import NO_EXECUTE, NO_SCHEDULE, tolerations_for_pods, untolerated

RUN, STAY, NEITHER = (True, True), (False, True), (False, False)
"""(create a pod here, keep an existing pod): the only three answers. A pod that may run may stay."""

_PLACEMENTS_MAX = 1024  # as many DaemonSets as a cluster may have; some tens of kilobytes
_TAINT_SETS_MAX = 256  # few combinations of taints exist in a cluster at one time

_ENCODER = msgspec.msgpack.Encoder()
_PLACEMENT = msgspec.msgpack.Decoder(Placement)


class Eligibility:
    """A placement with the tolerations of its pods, prepared once for many nodes."""

    __slots__ = ("_filter", "_node_name", "_of_taints", "_tolerations")

    def __init__(self, placement: Placement) -> None:
        """Prefer `eligibility_of`, which makes each one once."""
        self._node_name = placement.node_name
        self._filter = NodeFilter(placement)
        self._tolerations = tolerations_for_pods(placement)
        self._of_taints: dict[tuple[Taint, ...], tuple[bool, bool]] = {}

    def eligible(self, node: Node) -> tuple[bool, bool]:
        """(whether the node should get a pod, whether a pod that is there may stay)."""
        if self._node_name and self._node_name != node.name:
            return NEITHER
        if not self._filter.everything and not self._filter.matches(node.labels, node.name):
            return NEITHER
        taints = node.taints
        return self._of_taints.get(taints) or self._judged(taints)

    def _judged(self, taints: tuple[Taint, ...]) -> tuple[bool, bool]:
        """The answer by the taints alone, kept for other nodes with the same taints."""
        if untolerated(taints, self._tolerations, NO_EXECUTE):
            answer = NEITHER
        elif untolerated(taints, self._tolerations, NO_SCHEDULE):
            answer = STAY
        else:
            answer = RUN
        if len(self._of_taints) >= _TAINT_SETS_MAX:
            self._of_taints.clear()
        self._of_taints[taints] = answer
        return answer


def eligibility_of(placement: Placement) -> Eligibility:
    """The eligibility of a placement; equal placements share one."""
    return _of_blob(_ENCODER.encode(placement))


@lru_cache(maxsize=_PLACEMENTS_MAX)
def _of_blob(blob: bytes) -> Eligibility:
    """A placement has a map and so no hash; its blob has one."""
    return Eligibility(_PLACEMENT.decode(blob))
