"""The invariants, looked at after every step. Knows the world and the accepted steps, not the product's insides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.turns import Entry
from oarlock.controllers.objects.codec import decode_pod, decode_replicaset
from oarlock.controllers.objects.model import Pod, controller_of
from oarlock.workers.turn.steps import Write
from tests.simulation.slow_starts import SlowStarts
from tests.simulation.traffic import Traffic, View
from tests.simulation.violation import Violation
from tests.simulation.world import World, is_active


def view_of(batch: Batch, now_ms: int) -> View:
    """What the turns over these claims read."""
    return View({resource: int(mark.rv or 0) for resource, mark in batch.watermarks.items()}, now_ms)


def count_open(claim: Claim, world: Traffic) -> None:
    """What the record of a claim gives occasion for."""
    record = claim.expectations
    if record is None:
        return
    opened = [*record.creates.values(), *(each.open for each in record.deletes if not each.answered)]
    opened += [each.open for each in record.scales if each.open is not None]
    if any(each.over for each in opened) or any(record.reserved.values()):
        world.count("looks after D")
    if record.passed:
        world.count("passed over")


def count_loads(before: Batch, after: Batch, world: Traffic) -> None:
    """What claims left to be loaded, and whether it had changed by then."""
    for claim, loaded in zip(before.claims, after.claims, strict=True):
        for each in claim.unloaded:
            world.count("loaded after the claim")
            of = loaded.others.get(each.resource, loaded.children)
            had = claim.others.get(each.resource, claim.children)
            if len(of) - len(had) != len(each.ids):
                world.count("changed before it was loaded")


@dataclass
class Bounds:
    """Since the owner was last at rest: the most it asked for and what others added. Beside it, with the
    resourceVersions, what it asked for and what others took away: a delete goes by what its turn was shown.
    """

    most: int
    wanted: list[tuple[int, int]]
    lost_at: list[int] = field(default_factory=list)
    added: int = 0

    def fewest(self, seen: int) -> int:
        """The fewest pods that were wanted by the version that was current at ``seen`` or by any since."""
        before = [replicas for rv, replicas in self.wanted if rv <= seen][-1:]
        return min(before + [replicas for rv, replicas in self.wanted if rv > seen])

    def lost(self, seen: int) -> int:
        """How many pods others took away after ``seen``."""
        return sum(rv > seen for rv in self.lost_at)


@dataclass
class Checker:
    """I1 no over-creation, I2 no over-deletion, I4 fenced steps exclusive, I6 watermarks, I8 UIDs.

    I2: no delete is sent that the owner version read by its turn's claim does not allow. The judge takes the smallest
    number wanted since that version, less what others took away since the pods were read.
    """

    world: World
    bounds: dict[str, Bounds] = field(default_factory=dict)
    nonces: dict[str, str] = field(default_factory=dict)
    marks: dict[tuple[int, str], int] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    """The newest version of each owner that a turn has read."""
    on_claim: Callable[[str, list[str]], None] = lambda holder, tasks: None
    """Told which worker was handed which keys."""
    slow_starts: SlowStarts = field(init=False)

    def __post_init__(self) -> None:
        self.slow_starts = SlowStarts(self.world.count)

    def owner_changed(self, uid: str, replicas: int) -> None:
        """An owner was made, or scaled."""
        known = self.bounds.setdefault(uid, Bounds(replicas, []))
        known.most = max(known.most, replicas)
        known.wanted.append((self.world.rv, replicas))

    def other(self, uid: str, by: int) -> None:
        """Somebody else (or an adoption) is about to add a pod to the owner, or to take one away."""
        if uid in self.bounds:
            if by > 0:
                self.bounds[uid].added += by
            else:
                self.bounds[uid].lost_at.append(self.world.rv + 1)

    def created(self, pod: Pod) -> None:
        """A create of ours was committed."""
        ref = controller_of(pod)
        assert ref is not None
        bound = self.bounds[ref.uid]
        active = len(self.world.active(ref.uid))
        if active > bound.most + bound.added:
            raise Violation(f"I1: {active} active pods of {ref.name}, at most {bound.most} + {bound.added} were wanted")

    def deleted(self, pod: Pod, write: Write) -> None:
        """A delete of ours is being committed; the pod still counts."""
        if pod.uid != write.uid:
            raise Violation(f"I8: {pod.name} was deleted as {pod.uid}, {write.uid} was meant")
        ref = controller_of(pod)
        if ref is None or ref.uid not in self.bounds:
            return
        bound, view = self.bounds[ref.uid], self.world.landing
        if not is_active(pod):
            return
        left = len(self.world.active(ref.uid)) - 1
        fewest, lost = bound.fewest(view.since("replicasets")), bound.lost(view.since("pods"))
        if left < fewest - lost:
            raise Violation(f"I2: {left} active pods of {ref.name} left, at least {fewest} - {lost} wanted")

    def claimed(self, key: str, nonce: str) -> None:
        self.nonces[key] = nonce

    def accepted(self, key: str, nonce: str, step: str) -> None:
        """A fenced step was accepted: only the newest claim may."""
        if self.nonces.get(key) != nonce:
            raise Violation(f"I4: {step} of an earlier holder of {key} was accepted")
        if step == "finish":
            self.slow_starts.ended(key.partition(":")[2], nonce)

    def viewed(self, holder: str, batch: Batch) -> None:
        """A worker was handed keys, with what a turn over them reads."""
        self.on_claim(holder, [f"{claim.queue}:{claim.key}" for claim in batch.claims])
        self.world.views[holder] = view_of(batch, self.world.clock_ms())
        self.slow_starts.begun(holder, batch)
        for claim in batch.claims:
            count_open(claim, self.world)
            if claim.counts:
                self.world.count("counts handed over")
            deletes = claim.expectations.deletes if claim.expectations is not None else ()
            if claim.owner is not None:
                self.read[claim.owner.uid] = int(claim.owner.rv)
            if claim.owner is not None and not claim.unloaded and any(not each.answered for each in deletes):
                active = sum(is_active(decode_pod(child.blob)) for child in claim.children)
                if active <= decode_replicaset(claim.owner.blob).replicas:
                    self.world.count("obsolete deletes")

    def loaded(self, before: Batch, after: Batch) -> None:
        """A worker has read what its claims left to be loaded."""
        count_loads(before, after, self.world)

    def announced(self, claim: Claim, entries: Sequence[Entry]) -> None:
        """Writes were entered in a record."""
        self.slow_starts.announced(claim, entries)

    def watermark_is(self, epoch: int, resource: str, mark: int) -> None:
        """It never goes back inside an epoch."""
        last = self.marks.get((epoch, resource), 0)
        if mark < last:
            raise Violation(f"I6: the watermark of {resource} went from {last} back to {mark}")
        self.marks[epoch, resource] = mark

    def at_rest(self) -> None:
        """After each step: an owner that is as it asks to be, without outstanding writes, starts anew.

        Only once a turn has read its last change: until then one may go by an older wish.
        """
        for _, owner in self.world.owners.values():
            bound = self.bounds[owner.uid]
            if bound.most == owner.replicas and not bound.added:
                continue
            if self.read.get(owner.uid, 0) < bound.wanted[-1][0]:
                continue
            pods = len(self.world.existing(owner.uid)), len(self.world.active(owner.uid))
            if pods == (owner.replicas, owner.replicas) and not self.world.outstanding(owner.uid):
                bound.most, bound.added = owner.replicas, 0
