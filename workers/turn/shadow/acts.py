"""What happened to an owner between two turns: what its controller may have done, and what others did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from oarlock.workers.turn.shadow.seen import ACTIVE, ENDING, Child, Seen


class Acts(NamedTuple):
    """``created``: new children by UID. ``ended``: those that were not being deleted and are now, or have gone.
    ``sized``: ReplicaSets by UID, with the new size. ``adopted``: UIDs; ``relabelled``: not all had been orphans with
    the same labels before.

    What others did: ``spec``: the owner was changed. ``left``: how many children are active no more. ``gone``:
    whether one that was being deleted has gone. ``changed``: something else about a child is another. ``nodes``: the
    nodes are.
    """

    created: Mapping[str, Child]
    ended: Mapping[str, Child]
    sized: Mapping[str, int]
    adopted: frozenset[str]
    relabelled: bool
    spec: bool
    left: int
    gone: bool
    changed: bool
    nodes: bool

    @property
    def any(self) -> bool:
        """Whether a controller of the owner may have acted."""
        return bool(self.created or self.ended or self.sized or self.adopted)

    @property
    def by_others(self) -> bool:
        return self.spec or bool(self.left) or self.gone or self.changed or self.nodes


def between(old: Seen, new: Seen) -> Acts:
    """``old`` and ``new``: of one owner."""
    before, after = old.children, new.children
    came = {uid: child for uid, child in after.items() if uid not in before}
    both = [(uid, child, after[uid]) for uid, child in before.items() if uid in after]
    gone = before.keys() - after.keys() - new.orphans.keys()  # an orphan was released, or somebody took its owner away
    ended = {uid: child for uid, child in before.items() if child.state != ENDING and uid in gone}
    ended |= {uid: child for uid, child, now in both if child.state != ENDING and now.state == ENDING}
    left = [uid for uid, child in before.items() if child.state == ACTIVE and (uid not in after or _left(after[uid]))]
    return Acts(
        created={uid: child for uid, child in came.items() if uid not in old.orphans},
        ended=ended,
        sized={uid: now.size for uid, child, now in both if child.size != now.size},
        adopted=frozenset(came.keys() & old.orphans.keys()),
        relabelled=any(child.labels != old.orphans.get(uid, child.labels) for uid, child in came.items()),
        spec=old.spec != new.spec,
        left=len(left) + sum(_left(child) for child in came.values()),
        gone=any(child.state == ENDING and uid not in after for uid, child in before.items()),
        changed=any(child.digest != now.digest and uid not in ended for uid, child, now in both)
        or old.beyond != new.beyond,
        nodes=old.nodes != new.nodes,
    )


def _left(child: Child) -> bool:
    return child.state != ACTIVE
