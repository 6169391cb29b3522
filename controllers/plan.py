"""The input of a decision about equal pods, and the output of every decision about pods."""

from collections.abc import Mapping
from typing import Any

import msgspec

from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.objects.model import Pod, ReplicaSet
from oarlock.controllers.pods.events import Event
from oarlock.controllers.scheduling.model import Node


class Unanswered(msgspec.Struct, frozen=True):
    """Announced writes without an answer: each may have taken effect, or may still do so. Decisions allow for both.

    `creates`: names that such a create may take. A name stays here after an answer if an earlier request for it may
    still land. `nodes`: by name, the node of a create that is for one. `deletes`: UIDs of pods that may go. `leaving`:
    these, and those of answered deletes that the cache still shows. `quiet`: names and UIDs for which this turn sends
    no request. `passed`: names that were refused: another name is chosen, or, if names are fixed, the other creates
    come first. `resting`: names that may not be used yet.
    """

    creates: frozenset[str] = frozenset()
    deletes: frozenset[str] = frozenset()
    quiet: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    resting: frozenset[str] = frozenset()
    nodes: Mapping[str, str] = {}
    leaving: frozenset[str] = frozenset()

    def with_created(self, plan: "Plan") -> "Unanswered":
        """Those, and the creates of a plan that was carried out: the cache need not show them yet."""
        names = frozenset(plan.create)
        creates, quiet, nodes = self.creates | names, self.quiet | names, {**self.nodes, **plan.nodes}
        return msgspec.structs.replace(self, creates=creates, quiet=quiet, nodes=nodes)


NOTHING_UNANSWERED = Unanswered()


class Snapshot(msgspec.Struct, frozen=True):
    """All that a decision reads, as of one moment.

    `pods`: those controlled by the owner and the orphans of its namespace, in any phase. `satisfied`: the cache shows
    all our answered writes; this was known before the pods were read. `unanswered`: our other writes. `blocked`: names
    that pods of others have. `adopted`: None before claims are made; afterwards the UIDs of the orphans that were
    adopted, and every other orphan stays one. `siblings`, `related`: the owners under the same controller, and their
    pods; None until a plan asks for them. Pods that are in `pods` need not be repeated.
    """

    owner: ReplicaSet
    pods: tuple[Pod, ...]
    satisfied: bool = True
    unanswered: Unanswered = NOTHING_UNANSWERED
    blocked: frozenset[str] = frozenset()
    adopted: frozenset[str] | None = None
    siblings: tuple[ReplicaSet, ...] | None = None
    related: tuple[Pod, ...] | None = None


class Surroundings(msgspec.Struct, frozen=True):
    """What some kinds read beside the pods; each takes what it needs.

    `nodes`: all nodes of the cluster by name, in order of names. `nodes_old`: their view is too old to rely on.
    `revision`: hash label of the owner's current revision. `old_revisions`: its other revisions. `back_offs`: text by
    node, from the owner's expectations.
    """

    nodes: Mapping[str, Node] = {}
    nodes_old: bool = False
    revision: str = ""
    old_revisions: tuple[ControllerRevision, ...] = ()
    back_offs: Mapping[str, str] = {}


class Plan(msgspec.Struct, frozen=True):
    """What to do, in stages: adopt and release; then create, then delete. An empty plan: all is
    well.

    An adoption or release that is refused ends the turn: nothing is created or deleted, no status is written. An
    adoption whose pod has gone does not end it: the turn decides again with `adopted` set. The second stage assumes
    that every adoption succeeds.

    `create`: pod names in the order of sending. `delete`: name and UID of each victim, in the order of sending. Either
    may be a write that is sent again. `claimed`: the active pods that are ours. `terminating`: how many of ours are
    being deleted. `diff`: claimed pods minus wanted ones. `wants_related`: victims cannot be ranked yet; decide again
    with `siblings` and `related`. `age_ratios`: by UID, for the metric on deletion ages. `invalid`: why nothing at all
    is done, not even a status write.

    Of owners whose pods differ, such as DaemonSets: `nodes`: the node of each pod to create, by pod name. `revision`:
    hash label of the pods to create. `back_offs`: node and text of each back-off; the expectations have it before the
    deletes are sent. `forget`: nodes whose back-off is long over. `rests`: UIDs of victims whose names are not used
    again at once. `events`: further events of the owner. `error`: why a part was not done; the turn is tried again, and
    the status is written all the same. `again_ms`: look again after so long. `prune`: revisions to remove.

    Of all owners: `counts`: what the status is made from, unless the claimed pods are. `observed`: whether the status
    may say that this generation was acted on: not while expectations are pending, nor, of owners of equal pods, while
    writes without an answer may make more pods than wanted or take some away. `leaving`: UIDs of pods that our deletes
    take, or may take, where time alone may make these available.
    """

    adopt: tuple[Pod, ...] = ()
    release: tuple[Pod, ...] = ()
    create: tuple[str, ...] = ()
    delete: tuple[tuple[str, str], ...] = ()
    diff: int = 0
    claimed: tuple[Pod, ...] = ()
    terminating: int = 0
    wants_related: bool = False
    age_ratios: tuple[tuple[str, int], ...] = ()
    invalid: str = ""
    nodes: Mapping[str, str] = {}
    revision: str = ""
    back_offs: tuple[tuple[str, str], ...] = ()
    forget: tuple[str, ...] = ()
    rests: frozenset[str] = frozenset()
    events: tuple[Event, ...] = ()
    error: str = ""
    again_ms: int | None = None
    prune: tuple[Any, ...] = ()
    counts: Any = None
    observed: bool = True
    leaving: frozenset[str] = frozenset()

    @property
    def writes(self) -> bool:
        """Whether carrying it out sends any request about pods."""
        return bool(self.adopt or self.release or self.create or self.delete)
