"""The input of the decision about a DaemonSet. Its output is the common `Plan`."""

from collections.abc import Mapping

import msgspec

from oarlock.controllers.daemonset.backoff import BackOff
from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.plan import NOTHING_UNANSWERED, Surroundings, Unanswered
from oarlock.controllers.scheduling.model import Node


class DaemonSnapshot(msgspec.Struct, frozen=True):
    """All that a decision reads, as of one moment.

    `pods`, `satisfied`, `unanswered`, `blocked`, `adopted`: as in `controllers.plan.Snapshot`. `nodes`: every node
    of the cluster by name, in order of names; `nodes_old`: as in `controllers.plan.Surroundings`.
    `revision`: the hash label of the current revision, which new pods get. `old_revisions`: the owner's
    other revisions. `back_offs`: by node name.
    """

    owner: DaemonSet
    pods: tuple[Pod, ...]
    nodes: Mapping[str, Node]
    revision: str
    old_revisions: tuple[ControllerRevision, ...] = ()
    satisfied: bool = True
    unanswered: Unanswered = NOTHING_UNANSWERED
    blocked: frozenset[str] = frozenset()
    adopted: frozenset[str] | None = None
    back_offs: Mapping[str, BackOff] = {}
    nodes_old: bool = False


def snapshot(
    owner: DaemonSet,
    pods: tuple[Pod, ...],
    around: Surroundings,
    *,
    satisfied: bool,
    unanswered: Unanswered,
    blocked: frozenset[str],
) -> DaemonSnapshot:
    """The input of `decide`. A back-off that cannot be read counts as none."""
    back_offs = {node: parsed for node, text in around.back_offs.items() if (parsed := BackOff.parse(text)) is not None}
    return DaemonSnapshot(
        owner,
        pods,
        around.nodes,
        around.revision,
        around.old_revisions,
        satisfied=satisfied,
        unanswered=unanswered,
        blocked=blocked,
        back_offs=back_offs,
        nodes_old=around.nodes_old,
    )
