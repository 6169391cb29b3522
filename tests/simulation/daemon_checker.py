"""The invariants of DaemonSets, looked at with every commit. Knows the cluster and the accepted steps of the protocol.

What the cluster was like when the claim of a delete's turn was made, or since, excuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.turns import Entry
from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision
from oarlock.controllers.objects.model import Pod, controller_of
from oarlock.workers.turn.steps import Write
from tests.simulation.checker import Violation
from tests.simulation.daemon_docs import Doc, fits
from tests.simulation.daemon_failures import Failures, Rests
from tests.simulation.daemon_world import FINISHED, Change
from tests.simulation.protocol_checker import ProtocolChecker


@dataclass
class Watched:
    """One DaemonSet, by UID. ``limits``: of nodes it may do without, since which resourceVersion. ``down``: nodes whose
    available pod we deleted and that have no available one yet. ``unfit``, ``crowded``: the last resourceVersion at
    which a node should not run its pod, or had several; ``misfits``: nodes that should not run it now. A node that is
    gone, of those that were ever ``met``, is one of these.
    """

    name: str
    surged: bool = False
    limits: list[tuple[int, int]] = field(default_factory=list)
    down: dict[str, str] = field(default_factory=dict)
    unfit: dict[str, int] = field(default_factory=dict)
    misfits: set[str] = field(default_factory=set)
    met: set[str] = field(default_factory=set)
    crowded: dict[str, int] = field(default_factory=dict)

    def limit(self, seen: int) -> int:
        """The most nodes it could do without as of ``seen``, or since."""
        before = [limit for rv, limit in self.limits if rv <= seen][-1:]
        return max(before + [limit for rv, limit in self.limits if rv > seen])


@dataclass
class DaemonChecker(ProtocolChecker):
    """D1, D2, the history, the status, rests, I4, I5, I6 and I8.

    ``rolls``: whether D2 and rests are claimed, which they are not for two fleets.
    """

    rolls: bool = True
    sets: dict[str, Watched] = field(default_factory=dict)
    ours: set[str] = field(default_factory=set)
    planted: set[str] = field(default_factory=set)
    was_ready: set[str] = field(default_factory=set)
    rests: Rests = field(init=False)
    names: set[tuple[str, str, str]] = field(default_factory=set)
    """Verb, target and UID of every write announced in this epoch."""
    pods_at: dict[str, int] = field(default_factory=dict)
    """Pod UID -> resourceVersion since which it bears the hash it bears and is its owner's."""
    _bore: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.failures, self.rests = Failures(self.world), Rests(self.world)

    # -- what happens in the cluster

    def changed(self, change: Change) -> None:
        """A commit, by whomever."""
        match change.resource:
            case "pods":
                self._pod_changed(change.obj, change.rv, change.gone)
            case "nodes" | "daemonsets":
                self._fit_changed(change.rv)

    def _pod_changed(self, pod: Pod, rv: int, gone: bool) -> None:
        if not gone and pod.ready:
            self.was_ready.add(pod.uid)
        ref = controller_of(pod)
        bears = f"{ref.uid if ref else ''} {pod.labels.get(HASH_LABEL, '')}"
        if self._bore.get(pod.uid) != bears:
            self._bore[pod.uid], self.pods_at[pod.uid] = bears, rv
        if gone:
            self.rests.gone(pod)
        watched = self.sets.get(ref.uid) if ref is not None else None
        if watched is None or not pod.target_node or ref is None:
            return
        if not gone and pod.ready and pod.node_name and not pod.deleting_ms:
            watched.down.pop(pod.node_name, None)
        if len(self._on(ref.uid, pod.target_node)) + gone > 1:
            watched.crowded[pod.target_node] = rv - gone

    def _fit_changed(self, rv: int) -> None:
        nodes = self.world.tables["nodes"]
        living = {stored.obj.uid: stored for stored in self.world.tables["daemonsets"].values()}
        for uid, stored in living.items():
            owner, pods = stored.obj, stored.doc["spec"]["template"]
            watched = self.sets.setdefault(uid, Watched(owner.name))
            fit = {name for name, node in nodes.items() if fits(node.doc, pods)[0]}
            watched.unfit.update(dict.fromkeys(watched.misfits, rv - 1))
            watched.met.update(nodes)
            watched.misfits = {*watched.met, *watched.unfit, *watched.down} - fit
            for name in watched.misfits:
                watched.unfit[name] = rv
                watched.down.pop(name, None)
            watched.surged = watched.surged or bool(share(owner.max_surge, 1))
            limit = unavailable(owner, len(fit))
            if not watched.limits or watched.limits[-1][1] != limit:
                watched.limits.append((rv, limit))
        for uid in self.sets.keys() - living.keys():
            self.sets[uid].down.clear()

    def _on(self, uid: str, node: str) -> list[Pod]:
        """The pods of a set for a node, but those that have finished and are being deleted."""
        pods = [pod for pod in self.world.pods_of(uid) if pod.target_node == node]
        return [pod for pod in pods if not (pod.deleting_ms and pod.phase in FINISHED)]

    # -- what we have committed

    def created(self, obj: Any, write: Write) -> None:
        """A create of ours was committed."""
        if isinstance(obj, ControllerRevision):
            self._revision_created(obj)
            return
        ref = controller_of(obj)
        assert ref is not None
        self.ours.add(obj.uid)
        if self.rolls:
            self.rests.borne(obj)
        watched = self.sets.get(ref.uid)
        limit = 2 if watched is not None and watched.surged else 1
        mine = [pod.name for pod in self._on(ref.uid, obj.target_node) if pod.uid in self.ours]
        if len(mine) > limit:
            raise Violation(f"D1: {mine} of {ref.name} on {obj.target_node}, {limit} may be there")

    def _revision_created(self, new: ControllerRevision) -> None:
        ref = controller_of(new)
        assert ref is not None
        for stored in self.world.tables["controllerrevisions"].values():
            other = stored.obj
            theirs = controller_of(other)
            same = theirs is not None and theirs.uid == ref.uid and other.digest == new.digest and not other.deleting_ms
            if same and other.uid != new.uid and other.uid not in self.planted:
                raise Violation(f"history: {other.name} and {new.name} of {ref.name} hold the same template")

    def deleted(self, obj: Any, write: Write) -> None:
        """A delete of ours is being committed; the object is still there."""
        if obj.uid != write.uid:
            raise Violation(f"I8: {obj.name} was deleted as {obj.uid}, {write.uid} was meant")
        ref = controller_of(obj)
        if ref is None:
            raise Violation(f"I8: {obj.name}, which is nobody's, was deleted")
        if isinstance(obj, ControllerRevision):
            self._revision_deleted(obj, ref.uid, self.world.landing.since("pods"))
            return
        if ("delete", write.target, write.uid) in self.names:  # else its rest is lost with an epoch
            self.rests.deleted(obj)
        if self.rolls and ref.uid in self.sets:
            watched, seen = self.sets[ref.uid], self.world.landing.since("nodes", "daemonsets")
            if obj.target_node not in watched.misfits and watched.unfit.get(obj.target_node, -1) < seen:
                self._pod_deleted(obj, ref.uid, watched, seen)
                self.failures.deleted(obj, ref.uid)

    def _revision_deleted(self, revision: ControllerRevision, uid: str, seen_rv: int) -> None:
        bearers = [
            pod.name
            for pod in self.world.pods_of(uid)
            if pod.labels.get(HASH_LABEL) == revision.hash and self.pods_at[pod.uid] <= seen_rv
        ]
        twin = [
            stored.obj.name
            for stored in self.world.tables["controllerrevisions"].values()
            if stored.obj.hash == revision.hash and stored.obj.uid != revision.uid
        ]
        if bearers and not twin:
            raise Violation(f"history: {revision.name} was deleted, whose hash {bearers} bear")

    def _pod_deleted(self, pod: Pod, uid: str, watched: Watched, seen: int) -> None:
        """D2: a delete of a pod that is available."""
        node = pod.node_name
        owner = next((s.obj for s in self.world.tables["daemonsets"].values() if s.obj.uid == uid), None)
        if owner is None or not node or not pod.ready or pod.deleting_ms or pod.phase in FINISHED:
            return
        unseen_ms = self.world.clock_ms() - self.world.landing.at_ms
        ready_ms = self.world.wall_ms() - pod.ready_since_ms - unseen_ms
        if owner.min_ready_seconds and ready_ms < owner.min_ready_seconds * 1000:
            return
        if watched.crowded.get(node, -1) >= self.world.landing.since("pods"):
            return
        others = [each for each in self._on(uid, node) if each.uid != pod.uid and not each.deleting_ms]
        if any(each.uid in self.was_ready for each in others):
            return
        watched.down[node] = pod.name
        limit = watched.limit(seen)
        self.world.count("available pods deleted")
        if len(watched.down) > limit:
            raise Violation(f"D2: {watched.name} is down on {watched.down} by our doing, {limit} may be")

    def status(self, owner: Any, patch: Doc) -> None:
        """A status of ours is being committed."""
        new = patch.get("observedGeneration")
        if "observedGeneration" in patch and (new or 0) < owner.status.observed_generation:
            raise Violation(f"I9: {owner.name} had observed {owner.status.observed_generation}, now {new}")
        if (new or 0) > owner.generation:
            raise Violation(f"I9: {owner.name} is of generation {owner.generation}, {new} was observed")

    # -- the steps of the protocol

    def viewed(self, holder: str, batch: Batch) -> None:
        """A worker was handed keys, with what a turn over them reads."""
        self.failures.viewed(batch)
        super().viewed(holder, batch)

    def announced(self, claim: Claim, entries: Sequence[Entry]) -> None:
        """Writes were entered in a record."""
        self.names.update((entry.verb, entry.target, entry.uid) for entry in entries)
        for entry in entries:
            if entry.verb == "delete":
                self.failures.announced(claim, entry)

    def sent(self, write: Write) -> None:
        """I5: what is sent was announced."""
        if write.resource == "pods" and write.verb in ("create", "delete"):
            uid = write.uid if write.verb == "delete" else ""
            if (write.verb, write.target, uid) not in self.names:
                raise Violation(f"I5: {write.verb} {write.target} was sent without a word")

    def new_epoch(self) -> None:
        """Nothing that was announced before counts any more."""
        self.names.clear()
        self.failures.new_epoch()
        self.rests.new_epoch()

    def at_rest(self) -> None:
        """Nothing is to be looked at but with a commit."""


def share(value: int | str | None, total: int) -> int:
    if isinstance(value, str):
        return -(-int(value[:-1]) * total // 100)
    return value or 0


def unavailable(owner: DaemonSet, desired: int) -> int:
    """How many nodes it may do without: none where it surges, at least one where it rolls otherwise."""
    if owner.strategy != "RollingUpdate":
        return 0
    limit = share(owner.max_unavailable, desired)
    return max(limit, 0 if share(owner.max_surge, desired) else 1)
