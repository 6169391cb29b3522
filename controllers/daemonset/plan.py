"""The input of the decision about a DaemonSet. Its output is the common `Plan`."""

from collections.abc import Mapping

import msgspec

from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.plan import NOTHING_UNANSWERED, Surroundings, Unanswered
from oarlock.controllers.scheduling.model import Node


class BackOff(msgspec.Struct, frozen=True):
    """How long a failed pod of a node is kept: `delay_ms` from `at_ms` on, for one generation of the owner that its
    status had acknowledged. An entry of another generation counts as absent.
    """

    generation: int
    delay_ms: int
    at_ms: int

    @property
    def text(self) -> str:
        """As it stands in the record, such as `generation=3 delay_ms=2000 at_ms=1700000000000`."""
        return f"generation={self.generation} delay_ms={self.delay_ms} at_ms={self.at_ms}"

    @classmethod
    def parse(cls, text: str) -> "BackOff | None":
        """Read `text`; None where it is not one."""
        facts = dict(word.split("=", 1) for word in text.split() if "=" in word)
        try:
            return cls(int(facts["generation"]), int(facts["delay_ms"]), int(facts["at_ms"]))
        except (KeyError, ValueError):
            return None


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
