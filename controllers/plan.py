"""What a decision about a number of equal pods is made from, and what comes out of any decision about pods."""

from collections.abc import Mapping
from typing import Any

import msgspec

from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.objects.model import Pod, ReplicaSet
from oarlock.controllers.pods.events import Event
from oarlock.controllers.scheduling.model import Node


class Unanswered(msgspec.Struct, frozen=True):
    """Writes announced earlier of which nobody knows whether they took effect, or will. Decisions count with both.

    `creates`: names that such a create may take; also of one that was answered, as long as an earlier request
    for the same name may still land. `nodes`: the node of each of them that is for one. `deletes`: UIDs of pods
    that may go. `quiet`: names and UIDs of these for
    which no request is to be sent in this turn. `passed`: names that were refused: others are taken for them, or come
    first where names are fixed. `resting`: names that may not be used yet.
    """

    creates: frozenset[str] = frozenset()
    deletes: frozenset[str] = frozenset()
    quiet: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    resting: frozenset[str] = frozenset()
    nodes: Mapping[str, str] = {}


NOTHING_UNANSWERED = Unanswered()


class Snapshot(msgspec.Struct, frozen=True):
    """All a decision may look at, as of one moment.

    `pods`: those controlled by the owner and the orphans of its namespace, in any phase. `satisfied`: the
    cache shows all writes of ours that have an answer; known before the pods were read. `unanswered`: those
    that have none. `blocked`: names known to be borne by pods that are not ours. `adopted`: None before
    claims have been made; afterwards the UIDs of the orphans that were adopted, and every other orphan stays
    one. `siblings`, `related`: asked for by a plan that wants them (None until then): the owners under the
    same controller, and the pods of these; pods that are in `pods` already need not be repeated.
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
    """What the decision of some kinds of owner reads beside its pods; each takes what it needs.

    `nodes`: all of the cluster by name, in order of names; `nodes_old`: nobody has confirmed them for so
    long that they may be otherwise by now. `revision`: hash label of the owner's current
    revision; `old_revisions`: its others. `back_offs`: text by node, from the owner's record.
    """

    nodes: Mapping[str, Node] = {}
    nodes_old: bool = False
    revision: str = ""
    old_revisions: tuple[ControllerRevision, ...] = ()
    back_offs: Mapping[str, str] = {}


class Plan(msgspec.Struct, frozen=True):
    """What to do, in stages: adopt and release; then create, then delete. An empty plan: all is
    well.

    An adoption or release that fails for certain ends the turn before anything is created or deleted and
    before the status is written. An adoption that finds its pod gone does not: decide again with `adopted`
    set. The second stage counts on every adoption to succeed.

    `create`: pod names in the order to send them. `delete`: name and UID of each victim, first to go first. Either
    may be a write that was sent before and is sent again.
    `claimed`: the active pods that are ours; `terminating`: how many more of ours are on their way out.
    `diff`: claimed pods minus wanted ones. `wants_related`: victims cannot be ranked yet; decide again with
    `siblings` and `related`. `age_ratios`: by UID, for the metric on deletion ages. `invalid`: why nothing at
    all is done, not even a status write.

    Of owners whose pods differ, such as DaemonSets: `nodes`: the node of each pod to create, by pod name.
    `revision`: hash label of the pods to create. `back_offs`: node and text of each back-off to keep in the
    record from before the deletes are sent; `forget`: nodes whose back-off is long over. `rests`: UIDs of
    victims whose names are not to be used again at once. `events`: what the
    owner is told beside the writes themselves. `error`: why a part was not done; the turn is tried again,
    the status is written all the same. `again_ms`: look again after so long. `prune`: objects of the owner's
    history to remove. `counts`: what the status is made from; `observed`: whether that may say that this
    generation has been acted on, which is false while expectations are pending.
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

    @property
    def writes(self) -> bool:
        """Whether carrying it out sends any request about pods."""
        return bool(self.adopt or self.release or self.create or self.delete)
