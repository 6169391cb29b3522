"""What is known about a Deployment, as sentences: how far its rollout is, and what holds it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from oarlock.cli.explain.sentences import Subject
from oarlock.cli.tables import counted, listed, span
from oarlock.controllers.deployment.decide import decide
from oarlock.controllers.deployment.model import RECREATE, Deployment, DeploymentCondition
from oarlock.controllers.deployment.plan import Plan, SizeWrite, Snapshot
from oarlock.controllers.deployment.progress import COMPLETE, PROGRESSING, TIMED_OUT
from oarlock.controllers.deployment.revisions import revision_of
from oarlock.controllers.deployment.sizing.limits import max_pods, min_available
from oarlock.controllers.objects.model import Pod, ReplicaSet
from oarlock.controllers.objects.status import get_condition
from oarlock.controllers.replicaset.status import REPLICA_FAILURE


def plan_of(snapshot: Snapshot, pods: Sequence[Pod], now_ms: int) -> Plan:
    """What a turn would do now, after the adoptions that it would make, and with a look at the pods if it wants one."""
    first = plan = decide(snapshot, now_ms)
    if first.adopt or first.release:
        snapshot = replace(snapshot, adopted=frozenset([each.uid for each in first.adopt]))
        plan = decide(snapshot, now_ms)
    if plan.wants_pods:
        plan = decide(replace(snapshot, pods=tuple(pods)), now_ms)
    return replace(plan, adopt=first.adopt, release=first.release)


@dataclass(frozen=True, slots=True)
class RolloutSubject(Subject):
    """A Deployment as the cache has it, and what a turn would decide about it now. ``size_writes``: by UID."""

    obj: Deployment
    rv: str
    plan: Plan
    now_ms: int
    size_writes: Mapping[str, SizeWrite] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        plan, obj = self.plan, self.obj
        acts = (plan.adopt, plan.release, plan.rollback, plan.create, plan.updates, plan.prune)
        return any(acts) or obj.status.observed_generation < obj.generation

    @property
    def waits(self) -> bool:
        return not self.obj.deleting_ms and not self._is_complete()

    @property
    def facts(self) -> dict[str, Any]:
        new, old = self.plan.rollout.new, self.plan.rollout.old
        return {
            "rollout": {
                "new": self._size_facts(new) if new is not None else None,
                "old": [self._size_facts(each) for each in old],
                "complete": self._is_complete(),
                "waiting_for": self._waiting_for(),
                "error": self.plan.invalid or self.plan.error,
            }
        }

    def sentences(self, kind: str) -> list[str]:
        obj, status = self.obj, self.obj.status
        said = [
            f"{kind} {obj.key} asks for {counted(obj.replicas, 'pod')} (resourceVersion {self.rv}); its status says"
            f" {status.replicas} created, {status.updated} up to date, {status.ready} ready,"
            f" {status.available} available."
        ]
        if obj.deleting_ms:
            return [*said, "It is being deleted: only its status is still written."]
        return [*said, *self._replicasets(), *self._next(), *self._held(), *self._conditions()]

    # -- inside

    def _is_complete(self) -> bool:
        """Whether its pods are those of the new ReplicaSet, as many as asked for, and available."""
        new, old, replicas = self.plan.rollout.new, self.plan.rollout.old, self.obj.replicas
        if new is None or any(each.replicas or each.status.replicas for each in old):
            return False
        return new.replicas == new.status.replicas == new.status.available == replicas

    def _size_facts(self, replicaset: ReplicaSet) -> dict[str, Any]:
        status, write = replicaset.status, self.size_writes.get(replicaset.uid)
        return {
            "name": replicaset.name,
            "revision": revision_of(replicaset),
            "replicas": replicaset.replicas,
            "created": status.replicas,
            "available": status.available,
            "observed": status.observed_generation >= replicaset.generation,
            "size_write": {"low": write.low, "high": write.high, "open": write.open} if write is not None else None,
        }

    def _replicasets(self) -> list[str]:
        new, old = self.plan.rollout.new, self.plan.rollout.old
        said = ["No ReplicaSet has its present template."]
        if new is not None:
            said = [f"Its present template is ReplicaSet {_told(new)}."]
        active = [each for each in old if each.replicas or each.status.replicas]
        if active:
            said.append(f"Pods of older templates: {listed([_told(each) for each in reversed(active)])}.")
        if empty := len(old) - len(active):
            said.append(f"{empty} older ReplicaSets without pods are kept.")
        return said

    def _next(self) -> list[str]:
        """What a turn would do now."""
        plan = self.plan
        does = [f"adopt {each.name}" for each in plan.adopt] + [f"release {each.name}" for each in plan.release]
        if plan.rollback is not None:
            does.append("end the rollback that was asked for")
        if plan.create is not None:
            does.append(f"create ReplicaSet {plan.create.name} and scale it to {plan.create.replicas}")
        sizes = [each for each in plan.updates if each.replicas != each.replicaset.replicas]
        does += [f"scale {each.replicaset.name} from {each.replicaset.replicas} to {each.replicas}" for each in sizes]
        if others := len(plan.updates) - len(sizes):
            does.append(f"annotate {others} ReplicaSets")
        if plan.prune:
            does.append(f"delete {listed([each.name for each in plan.prune])}")
        return [f"A turn would {', '.join(does)}."] if does else []

    def _held(self) -> list[str]:
        """Why no more is done now."""
        plan, obj, said = self.plan, self.obj, []
        if plan.invalid:
            return [f"Nothing can be done about it: {plan.invalid.rstrip('.')}."]
        if plan.error:
            said.append(f"A part cannot be done: {plan.error.rstrip('.')}.")
        if obj.paused:
            said.append("It is paused: changes of its template wait until it is resumed, changes of its size do not.")
        if waiting_for := self._waiting_for():
            said.append(f"It waits: {waiting_for}.")
        if collisions := obj.status.collision_count:
            said.append(f"{collisions} times the name of its new ReplicaSet was taken by another one (collisionCount).")
        return said if plan.error or obj.strategy == RECREATE else said + self._limits()

    def _waiting_for(self) -> str:
        """What is to happen before more is done; empty if it is not waiting."""
        plan, new = self.plan, self.plan.rollout.new
        if plan.waiting_for or plan.invalid or self.differs or self.obj.paused or new is None:
            return plan.waiting_for
        late = new.replicas - new.status.available
        return f"{late} of the {new.replicas} pods of {new.name} are to become available" if late > 0 else ""

    def _limits(self) -> list[str]:
        """The limits of a rolling update that is under way, and how far they are used up."""
        new, old = self.plan.rollout.new, self.plan.rollout.old
        if new is None or self._is_complete():
            return []
        sizes = sum(each.replicas for each in (new, *old))
        available = sum(each.status.available for each in (new, *old))
        return [
            f"At most {max_pods(self.obj)} pods may exist and at least {min_available(self.obj)} stay available:"
            f" its ReplicaSets ask for {sizes}, and {available} are available."
        ]

    def _conditions(self) -> list[str]:
        conditions, said = self.obj.status.conditions, []
        failure, progress = get_condition(conditions, REPLICA_FAILURE), get_condition(conditions, PROGRESSING)
        if failure is not None and failure.status == "True":
            said.append(f"Its pods could not be made or deleted: {_reason(failure)}.")
        if progress is None or self.obj.progress_deadline_seconds is None:
            return said
        if progress.reason == TIMED_OUT:
            ago = span(max(0, self.now_ms - progress.last_transition_ms))
            said.append(
                f"It has made no progress within its deadline, which was exceeded {ago} ago; it goes on anyway."
            )
        elif progress.status == "False":
            said.append(f"It makes no progress: {_reason(progress)}.")
        elif not self.obj.paused and progress.reason != COMPLETE:
            left_ms = progress.last_update_ms + self.obj.progress_deadline_seconds * 1000 - self.now_ms
            said.append(f"Without progress its deadline is exceeded in {span(max(0, left_ms))}.")
        return said


def _told(replicaset: ReplicaSet) -> str:
    """``web-5d (revision 4), size 8: 7 created, 6 available``."""
    revision, status = revision_of(replicaset), replicaset.status
    numbered = f" (revision {revision})" if revision else ""
    return (
        f"{replicaset.name}{numbered}, size {replicaset.replicas}: {status.replicas} created,"
        f" {status.available} available"
    )


def _reason(condition: DeploymentCondition) -> str:
    return f"{condition.reason}: {condition.message.rstrip('.')}"
