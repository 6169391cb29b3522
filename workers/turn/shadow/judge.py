"""Whether what upstream did is what was decided; where it is not, why. The reasons stand in docs/shadow.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from oarlock.controllers.replicaset.ranking import age_bucket
from oarlock.workers.turn.shadow.acts import Acts
from oarlock.workers.turn.shadow.seen import ACTIVE, Child, Seen
from oarlock.workers.turn.shadow.wanted import REPLICASETS, Wanted

SAME, UNEXPLAINED = "same", "unexplained"
OUTSIDE, LATE, TIME, EQUAL = "outside-change", "acted-on-earlier", "time-passed", "equal-rank"
UNOBSERVED = "unobserved-size"
COST, AGE, AVAILABLE = "deletion-cost", "logarithmic-age", "available-last"
SPEC_ALONE = 2**31
NAMED = 5
"""So many names are told."""

Version = tuple[int, int]
"""Of Kubernetes."""


class Finding(NamedTuple):
    """Of acts of upstream's. ``reason``: SAME, UNEXPLAINED or why they differ. ``text``: for people, unless SAME.
    ``needs``: so many children have to be active no more to explain it, or the owner to be changed; 0: whatever others
    did explains it.
    """

    reason: str
    text: str = ""
    needs: int = 0


class Earlier(msgspec.Struct, frozen=True, array_like=True):
    """What was wanted at any moment since the window opened, or just before: upstream may act on what it saw then."""

    creates: Mapping[str, int] = {}
    deletes: frozenset[str] = frozenset()
    sizes: Mapping[str, tuple[int, ...]] = {}
    new_sizes: frozenset[int] = frozenset()
    touches: frozenset[str] = frozenset()

    def and_also(self, wanted: Wanted) -> Earlier:
        """With what is wanted now."""
        creates = dict(self.creates)
        for place, count in wanted.creates.items():
            creates[place] = max(count, creates.get(place, 0))
        sizes = {uid: tuple({*self.sizes.get(uid, ()), size}) for uid, size in wanted.sizes.items()}
        return Earlier(
            creates,
            self.deletes | wanted.deletes,
            {**self.sizes, **sizes},
            self.new_sizes | ({wanted.new_size} if wanted.creates.get(REPLICASETS) else frozenset()),
            self.touches | wanted.touches,
        )


class Moment(NamedTuple):
    """Around what upstream did. ``wanted``: decided on what was ``before``, ``wanted_now`` on what is there ``after``.
    ``is_time``: the owner was to be looked at again by now. ``version``: of the server.
    """

    before: Seen
    after: Seen
    wanted: Wanted
    wanted_now: Wanted
    earlier: Earlier
    acts: Acts
    is_time: bool
    now_ms: int
    version: Version


def findings(moment: Moment) -> Iterator[Finding]:
    """One for each sort of act."""
    acts = moment.acts
    if acts.created:
        yield _of_creates(moment)
    if acts.ended:
        yield from _of_deletes(moment)
    if acts.sized:
        yield _of_sizes(moment)
    if acts.adopted:
        yield _of_adoptions(moment)


def _of_creates(moment: Moment) -> Finding:
    acts, wanted = moment.acts, moment.wanted.creates
    if moment.after.resource == REPLICASETS:
        return _of_new_replicaset(moment)
    by_node = _is_daemonset(moment)
    did: dict[str, int] = {}
    for child in acts.created.values():
        place = child.node if by_node else ""
        did[place] = did.get(place, 0) + 1
    if _within(did, wanted):
        return Finding(SAME)
    if by_node and _within({"": sum(did.values())}, {"": sum(wanted.values())}) and _all_surge(moment):
        return Finding(EQUAL, "upstream surged on other nodes")
    text = f"upstream created {_told(did)}, {_told(wanted) or 'none'} was to be created"
    if _within(did, moment.earlier.creates):
        return Finding(LATE, text)
    surplus = 0 if by_node else did[""] - wanted.get("", 0)
    if excuses(acts, surplus):
        return Finding(OUTSIDE, text)
    return Finding(TIME if moment.is_time and by_node else UNEXPLAINED, text, surplus)


def excuses(acts: Acts, needs: int) -> bool:
    """Whether what others did may be why upstream did something else. ``needs``: as in ``Finding``."""
    return acts.spec or (acts.left >= needs if needs else acts.by_others)


def _is_daemonset(moment: Moment) -> bool:
    return bool(moment.before.nodes or moment.after.nodes)


def _all_surge(moment: Moment) -> bool:
    """Whether each node with a new pod has another one of the set."""
    nodes = {child.node for child in moment.before.children.values()}
    return all(child.node in nodes for child in moment.acts.created.values())


def _of_new_replicaset(moment: Moment) -> Finding:
    created, wanted = moment.acts.created, moment.wanted
    sizes = {child.size for child in created.values()}
    text = f"upstream created {_names(created)} of size {', '.join(map(str, sorted(sizes)))}"
    if len(created) == 1 and wanted.creates.get(REPLICASETS):
        if sizes == {wanted.new_size}:
            return Finding(SAME)
        text += f", size {wanted.new_size} was decided"
    if REPLICASETS in moment.earlier.creates and sizes <= moment.earlier.new_sizes:
        return Finding(LATE, text)
    return Finding(OUTSIDE if moment.acts.by_others else _of_waiting(moment), text)


def _of_deletes(moment: Moment) -> Iterator[Finding]:
    """Where nothing was to be deleted, others have deleted, and a pod is wanted in place of each. If none is, or one of
    another revision, upstream has deleted what nobody decided to.
    """
    acts, wanted = moment.acts, moment.wanted
    decided = wanted.deletes | wanted.touches  # one that is released is not among the children any more
    if acts.ended.keys() & decided:
        yield Finding(SAME)
    others = {uid: child for uid, child in acts.ended.items() if uid not in decided}
    before = moment.before.children
    spared = [before[uid] for uid in wanted.deletes - acts.ended.keys() if uid in before]
    found: dict[str, list[Child]] = {}
    for uid, child in others.items():
        reason, match = _choice(child, spared, moment)
        if match is not None:
            spared.remove(match)
        elif not spared:
            break  # more than were to be deleted: of those that are left, others have deleted some
        elif uid in moment.earlier.deletes:
            reason = LATE
        elif acts.spec or acts.changed or acts.left > len(acts.ended) or acts.created or acts.nodes:
            reason = OUTSIDE
        found.setdefault(reason, []).append(child)
    if not wanted.deletes and (lost := _not_wanted_back(moment, others)):
        found[_of_lost(moment, lost)] = list(lost.values())
    names = [before[uid].name for uid in wanted.deletes if uid in before]
    for reason, children in found.items():
        told = ", ".join(each.name for each in children[:NAMED])
        yield Finding(reason, f"upstream deleted {told}, decided was {', '.join(sorted(names)[:NAMED]) or 'nothing'}")


def _not_wanted_back(moment: Moment, others: Mapping[str, Child]) -> dict[str, Child]:
    """Of what nobody decided to delete: what is not replaced by its like."""
    created, wanted = moment.acts.created, moment.wanted_now
    if moment.after.resource == REPLICASETS:
        return {}  # the garbage collector and people delete them, and no size follows from it
    if not _is_daemonset(moment):
        active = {uid: child for uid, child in others.items() if child.state == ACTIVE}
        return active if len(created) + wanted.creates.get("", 0) < len(active) else {}
    revisions = dict.fromkeys(wanted.creates, wanted.revision)
    revisions |= {child.node: child.revision for child in created.values()}
    return {
        uid: child
        for uid, child in others.items()
        if revisions.get(child.node, child.revision) != child.revision and not moment.after.on_delete
    }


def _of_lost(moment: Moment, lost: Mapping[str, Child]) -> str:
    acts = moment.acts
    if lost.keys() <= moment.earlier.deletes:
        return LATE
    if acts.spec or (_is_daemonset(moment) and (acts.nodes or acts.changed or acts.gone)):
        return OUTSIDE
    return TIME if moment.is_time and _is_daemonset(moment) else UNEXPLAINED


def _choice(child: Child, spared: list[Child], moment: Moment) -> tuple[str, Child | None]:
    """Why upstream may have taken this one in place of one that was decided, and of which."""
    for reason, may_be in (
        (EQUAL, lambda other: _alike(child, other, moment)),
        (AGE, lambda other: moment.version < (1, 22) and child.like == other.like and child.cost == other.cost),
        (COST, lambda other: moment.version < (1, 22) and child.like == other.like),
        (AVAILABLE, lambda other: bool(moment.before.ready_seconds) and child.like[:2] == other.like[:2]),
    ):
        for other in spared:
            if may_be(other):
                return reason, other
    return UNEXPLAINED, None


def _alike(one: Child, other: Child, moment: Moment) -> bool:
    """Whether the rules tell the two apart by nothing but their UIDs; ages are compared by their order of magnitude,
    and may be one apart, since upstream looked at another moment. Daemon pods of a node have no order at all.
    """
    if (one.like, one.cost) != (other.like, other.cost):
        return False
    if _is_daemonset(moment):
        return True
    ages = [(one.created_ms, other.created_ms)]
    if one.ready_ms and other.ready_ms:
        ages.append((one.ready_ms, other.ready_ms))
    near = all(abs(age_bucket(moment.now_ms - a) - age_bucket(moment.now_ms - b)) <= 1 for a, b in ages)
    return near and one.restarts == other.restarts


def _of_sizes(moment: Moment) -> Finding:
    acts, wanted, children = moment.acts, moment.wanted, moment.after.children
    other = {uid: size for uid, size in acts.sized.items() if wanted.sizes.get(uid) != size}
    if not other:
        return Finding(SAME)
    did = ", ".join(f"{children[uid].name} to {size}" for uid, size in other.items())
    was = ", ".join(f"{children[uid].name} to {size}" for uid, size in wanted.sizes.items() if uid in children)
    text = f"upstream sized {did}; decided was {was or 'nothing'}"
    if all(size in moment.earlier.sizes.get(uid, ()) for uid, size in other.items()):
        return Finding(LATE, text)
    if acts.by_others or acts.created:
        return Finding(OUTSIDE, text)
    done = len(other) < len(acts.sized)  # a step that was decided, and what upstream made of it in the next sync
    return Finding(UNOBSERVED if done else _of_waiting(moment), text)


def _of_waiting(moment: Moment) -> str:
    """Where pods are added, a fleet waits until those of the old ReplicaSets have followed their sizes. Upstream does
    not.
    """
    if not all(child.settled for child in moment.before.children.values()):
        return UNOBSERVED
    return TIME if moment.is_time else UNEXPLAINED


def _of_adoptions(moment: Moment) -> Finding:
    if moment.acts.adopted <= moment.wanted.touches:
        return Finding(SAME)
    adopted = {uid: moment.after.children[uid] for uid in moment.acts.adopted}
    text = f"upstream adopted {_names(adopted)}"
    if moment.acts.adopted <= moment.earlier.touches:
        return Finding(LATE, text)
    return Finding(OUTSIDE if moment.acts.spec or moment.acts.relabelled else UNEXPLAINED, text, SPEC_ALONE)


def _within(did: Mapping[str, int], allowed: Mapping[str, int]) -> bool:
    return all(count <= allowed.get(place, 0) for place, count in did.items())


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count}{f' on {place}' if place else ''}" for place, count in sorted(counts.items())[:NAMED])


def _names(children: Mapping[str, Child]) -> str:
    return ", ".join(sorted(child.name for child in children.values())[:NAMED])
