"""The invariants of Deployments, looked at with every commit. Knows the cluster and what was asked of it.

Limits are claimed as they were at any time since the Deployment was last at rest, less the pods that others took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import Entry
from oarlock.controllers.deployment.annotations import DESIRED_REPLICAS
from oarlock.controllers.deployment.model import RECREATE, Deployment
from oarlock.controllers.deployment.sizing.limits import max_pods, min_available
from oarlock.controllers.objects.codec import decode_replicaset
from oarlock.controllers.objects.model import Pod, ReplicaSet, controller_of, is_finished
from oarlock.workers.turn.steps import Write
from tests.simulation.checker import Violation
from tests.simulation.daemon_docs import Doc
from tests.simulation.daemon_world import Change
from tests.simulation.protocol_checker import ProtocolChecker
from tests.simulation.rollout_world import RolloutWorld
from tests.simulation.world import is_active


@dataclass
class Bounds:
    """Since the Deployment was last at rest: the most pods it might have, the fewest available ones it had to keep, how
    many pods others took, and whether it recreated all the time. ``ready_s``: the shortest and the longest
    minReadySeconds.
    """

    most: int
    fewest: int
    recreates: bool
    ready_s: tuple[int, int]
    lost: int = 0

    @classmethod
    def of(cls, deployment: Deployment) -> Bounds:
        recreates, ready_s = deployment.strategy == RECREATE, deployment.min_ready_seconds
        return cls(max_pods(deployment), min_available(deployment), recreates, (ready_s, ready_s))

    def widened(self, other: Bounds) -> Bounds:
        """So that they hold for both."""
        return Bounds(
            max(self.most, other.most),
            min(self.fewest, other.fewest),
            self.recreates and other.recreates,
            (min(self.ready_s[0], other.ready_s[0]), max(self.ready_s[1], other.ready_s[1])),
            self.lost,
        )


class Decided(NamedTuple):
    """A turn that announced a delete: when it had its claim, when it announced, and the size that it was to reach."""

    claimed_ms: int
    said_ms: int
    size: int


@dataclass
class RolloutChecker(ProtocolChecker):
    """R1 one ReplicaSet a template, R2 surge, R3 availability, R4 no pod of two templates where pods are recreated, R5
    what is pruned is empty, I5 size writes are announced, I8 UIDs, I9 the status; beside them those of the protocol.
    """

    world: RolloutWorld
    bounds: dict[str, Bounds] = field(default_factory=dict)
    scales: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """Sizes announced in this epoch, by target and resourceVersion."""
    looked_at_rv: int = 0
    """The last version of the cluster that was looked at while nothing was outstanding."""
    _asked: dict[str, tuple[int, Bounds]] = field(default_factory=dict)
    """UID -> version of a Deployment, and the bounds that it asks for."""
    was_available: set[str] = field(default_factory=set)
    owners: dict[str, str] = field(default_factory=dict)
    """ReplicaSet -> Deployment."""
    ours: set[str] = field(default_factory=set)
    """Pods that we have ended."""
    drain_ms: int = 0
    claimed_ms: dict[str, int] = field(default_factory=dict)
    """When each nonce was given."""
    deletes: dict[str, list[Decided]] = field(default_factory=dict)
    """UID -> the turns that announced a delete of it."""

    def claimed(self, key: str, nonce: str) -> None:
        super().claimed(key, nonce)
        self.claimed_ms[nonce] = self.world.wall_ms()

    # -- what happens in the cluster

    def changed(self, change: Change) -> None:
        """A commit, by whomever."""
        if change.resource == "deployments" and not change.gone:
            now = Bounds.of(change.obj)
            known = self.bounds.get(change.obj.uid)
            self.bounds[change.obj.uid] = now if known is None else known.widened(now)
        elif change.resource == "pods":
            self._pod_changed(change.obj, change.gone)
        elif change.resource == "replicasets":
            self._replicaset_changed(change.obj)

    def _replicaset_changed(self, replicaset: ReplicaSet) -> None:
        """With one that others take from its Deployment, or scale, its pods go; when it comes back, so do they."""
        ref = controller_of(replicaset)
        before, self.owners[replicaset.uid] = self.owners.get(replicaset.uid, ""), ref.uid if ref is not None else ""
        if before and ref is None and before in self.bounds:
            pods = self.world.pods_of(replicaset.uid)
            self.bounds[before].lost += len(pods)
            self.bounds[before].most += max(len(pods), replicaset.replicas)

    def _pod_changed(self, pod: Pod, gone: bool) -> None:
        """Of the pods that were available, each that others end or make unready is no loss of ours."""
        if not gone and is_active(pod) and pod.ready:
            self.was_available.add(pod.uid)
        elif pod.uid in self.was_available:
            self.was_available.discard(pod.uid)
            uid = self.world.deployment_of(pod)
            if uid in self.bounds and pod.uid not in self.ours:
                self.bounds[uid].lost += 1

    def taken(self, uid: str, pods: int) -> None:
        """Somebody takes pods by a size."""
        self.bounds[uid].lost += pods

    # -- what we have committed

    def created(self, obj: Any, write: Write) -> None:
        """A create of ours was committed."""
        if isinstance(obj, ReplicaSet):
            self._replicaset_created(obj)
            return
        uid = self.world.deployment_of(obj)
        if uid not in self.bounds:
            return
        bound, pods = self.bounds[uid], self.world.pods_below(uid)
        active = sum(map(is_active, pods))
        if active > bound.most:
            sizes = [(each.name, each.replicas) for each in self.world.replicasets_of(uid)]
            raise Violation(f"R2: {active} active pods of {uid}, at most {bound.most} may be: {sizes}")
        if bound.recreates:
            ref = controller_of(obj)
            others = [pod.name for pod in pods if controller_of(pod) != ref and not is_finished(pod)]
            if others:
                raise Violation(f"R4: {obj.name} was created beside {others} of another template")

    def _replicaset_created(self, new: ReplicaSet) -> None:
        ref = controller_of(new)
        if new.replicas:
            raise Violation(f"R2: {new.name} was created with {new.replicas} pods")
        assert ref is not None
        for other in self.world.replicasets_of(ref.uid):
            if other.uid != new.uid and other.template_digest == new.template_digest and not other.deleting_ms:
                raise Violation(f"R1: {other.name} and {new.name} have the same template")

    def deleted(self, obj: Any, write: Write) -> None:
        """A delete of ours is being committed; the object is still there."""
        if obj.uid != write.uid:
            raise Violation(f"I8: {obj.name} was deleted as {obj.uid}, {write.uid} was meant")
        if isinstance(obj, ReplicaSet):
            if obj.replicas or any(map(is_active, self.world.pods_of(obj.uid))):
                raise Violation(f"R5: {obj.name} was deleted with {obj.replicas} pods wanted")
            self.world.count("replicasets pruned")
            return
        self.ours.add(obj.uid)
        uid = self.world.deployment_of(obj)
        if uid not in self.bounds:
            return
        ref = controller_of(obj)
        assert ref is not None
        _, longest_s = self.bounds[uid].ready_s
        decided = self._under_way(obj.uid)
        claimed_ms = min(each.claimed_ms for each in decided)
        if not self.world.is_available(obj, longest_s) or not self.world.was_ready(obj, longest_s, claimed_ms):
            return  # it was chosen because it was not available
        self.world.count("available pods deleted")
        for owner in self.world.replicasets_of(uid):
            left = self._available(owner, uid) - 1
            # Else it was judged with the size: with that of now, or with a smaller one that was there at the decision.
            if owner.uid == ref.uid and left < min(owner.replicas, *(each.size for each in decided)):
                self._take(uid, f"delete of {obj.name}", one_of=owner.uid)

    def _under_way(self, uid: str) -> list[Decided]:
        """The turns whose delete may still have been under way."""
        now_ms, known = self.world.wall_ms(), self.deletes[uid]
        return [each for each in known if now_ms - each.said_ms <= self.drain_ms or each.said_ms == known[-1].said_ms]

    def sized(self, before: ReplicaSet) -> None:
        """A size of ours was committed. It takes the available pods that the status counted when it was decided.

        One that goes with another size of the Deployment is the share of a change that somebody asked for: it heeds no
        limit (upstream: scale of pkg/controller/deployment/sync.go), so what it takes is no loss of ours.
        """
        ref = controller_of(before)
        if ref is None or ref.uid not in self.bounds:
            return
        (after,) = (each for each in self.world.replicasets_of(ref.uid) if each.uid == before.uid)
        if before.status.available > after.replicas < before.replicas:
            asked_for = after.annotations.get(DESIRED_REPLICAS) != before.annotations.get(DESIRED_REPLICAS)
            self._take(ref.uid, f"size {after.replicas} of {after.name}", asked_for=asked_for)

    def _take(self, uid: str, what: str, *, one_of: str = "", asked_for: bool = False) -> None:
        """``one_of``: the ReplicaSet that loses a pod which is still there. ``asked_for``: by a change of the size."""
        bound = self.bounds[uid]
        left = sum(
            min(self._available(each, uid) - (each.uid == one_of), each.replicas)
            for each in self.world.replicasets_of(uid)
        )
        if left < bound.fewest - bound.lost:
            if asked_for:
                bound.lost = bound.fewest - left
                return
            raise Violation(f"R3: {what} left {left} pods available, {bound.fewest} - {bound.lost} have to be")

    def _available(self, replicaset: ReplicaSet, uid: str) -> int:
        shortest_s, _ = self.bounds[uid].ready_s
        return sum(self.world.is_available(pod, shortest_s) for pod in self.world.pods_of(replicaset.uid))

    def status(self, owner: Any, patch: Doc) -> None:
        """A status of ours is being committed."""
        new = patch.get("observedGeneration")
        if "observedGeneration" in patch and (new or 0) < owner.status.observed_generation:
            raise Violation(f"I9: {owner.name} had observed {owner.status.observed_generation}, now {new}")
        if (new or 0) > owner.generation:
            raise Violation(f"I9: {owner.name} is of generation {owner.generation}, {new} was observed")

    # -- the steps of the protocol

    def announced(self, claim: Claim, entries: Sequence[Entry]) -> None:
        """Writes were entered in the expectations."""
        for entry in entries:
            if entry.verb == "scale":
                low, high = (int(word.partition("=")[2]) for word in entry.hint.split())
                self.scales[entry.target, entry.rv] = low, high
            elif entry.verb == "delete":
                assert claim.owner is not None
                size = decode_replicaset(claim.owner.blob).replicas if claim.queue == "replicaset" else 0
                decided = Decided(self.claimed_ms[claim.nonce], self.world.wall_ms(), size)
                self.deletes.setdefault(entry.uid, []).append(decided)

    def sent(self, write: Write) -> None:
        """I5: a size that is sent was announced, with the version that it is for."""
        size = orjson.loads(write.body).get("spec", {}).get("replicas") if write.verb == "patch" else None
        if write.resource == "replicasets" and size is not None:
            low, high = self.scales.get((write.target, write.rv), (1, 0))
            if not low <= size <= high:
                raise Violation(f"I5: {write.target} was sent {size} without a word")

    def new_epoch(self) -> None:
        """Nothing that was announced before counts any more."""
        self.scales.clear()

    def at_rest(self) -> None:
        """After each step: a Deployment that has all it asks for, without outstanding writes, starts anew.

        A cluster that has not changed since the last look is as it was.
        """
        if self.world.rv == self.looked_at_rv:
            return
        if any(flight.answer is None and not flight.lost for flight in self.world.flights):
            return
        self.looked_at_rv = self.world.rv
        for stored in self.world.deployments():
            uid = stored.obj.uid
            rv, asked = self._asked.get(uid, (0, None))
            if asked is None or rv != stored.rv:
                asked = Bounds.of(stored.obj)
                self._asked[uid] = stored.rv, asked
            if self.bounds[uid] != asked and not unfinished(self.world, stored.obj):
                self.bounds[uid] = replace(asked)


def unfinished(world: RolloutWorld, owner: Deployment) -> str:
    """What is not yet as the Deployment asks; empty if all is."""
    status = owner.status
    if status.observed_generation != owner.generation:
        return f"generation {owner.generation}, {status.observed_generation} is observed"
    replicasets = world.replicasets_of(owner.uid)
    for each in replicasets:
        wanted = owner.replicas if each.template_digest == owner.template_digest else 0
        if each.replicas != wanted or each.status.observed_generation != each.generation:
            return f"{each.name} has size {each.replicas} of {wanted}, or has not observed it"
        pods = world.pods_of(each.uid)
        if len(pods) != wanted or not all(is_active(pod) and pod.ready for pod in pods):
            return f"{each.name} has {len(pods)} of {wanted} pods, or not all are ready"
    if not any(each.template_digest == owner.template_digest for each in replicasets):
        return "no ReplicaSet has the template"
    told = status.replicas, status.updated, status.available
    return "" if told == (owner.replicas,) * 3 else f"the status says {told} of {owner.replicas}"
