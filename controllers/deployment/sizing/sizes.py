"""ReplicaSets counted both ways: how many pods each may have at most, and how many available ones it has for certain.

A size is written here, and the controller of the ReplicaSet acts on it when it likes. Until its status has observed the
last size, its pods may follow any size it had or may get since the status observed one. Upstream reckons with the sizes
alone, so pods that still run under a larger one, or a write that has landed unseen, can break its limits.

What this rests on: a ReplicaSet's status observes a generation only when none of its unanswered writes can make more
pods than its size, or leave fewer.
"""

from collections.abc import Iterable, Mapping

import msgspec

from oarlock.controllers.deployment import annotations, events
from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.deployment.plan import Rollout, SizeWrite, Update
from oarlock.controllers.objects.model import ReplicaSet

SizeWrites = Mapping[str, SizeWrite]
UNKNOWN = 2**31 - 1
"""As many as a ReplicaSet can have: counted where nobody knows its former sizes. No other one is made larger then."""
_CREATED = 1  # metadata.generation of an object whose spec never changed


class Counted(msgspec.Struct, frozen=True):
    """One ReplicaSet, counted both ways.

    `high`: it has no more active pods than this, unless its size is raised. `low`: it has no smaller size, and gets
    none by a write under way. `available`: its controller leaves so many of its available pods.
    """

    high: int
    low: int
    available: int


class Step(msgspec.Struct, frozen=True):
    """What a strategy does now. `updates`, `waiting_for`, `wants_pods`: as in `Plan`. `may_create`: the pods of the new
    ReplicaSet may start now.
    """

    updates: tuple[Update, ...] = ()
    waiting_for: str = ""
    wants_pods: bool = False
    may_create: bool = False


def count(replicaset: ReplicaSet, size_writes: SizeWrites) -> Counted:
    """How it counts while a write of its size may not have landed, or has landed and is not observed."""
    size, status = replicaset.replicas, replicaset.status
    write = size_writes.get(replicaset.uid)
    if write is not None:
        low = min(size, write.low)
        return Counted(max(size, status.replicas, write.high), low, min(status.available, low))
    if is_observed(replicaset):
        return Counted(max(size, status.replicas), size, min(status.available, size))
    return Counted(UNKNOWN, 0, 0)  # somebody else changed it, or what was remembered is lost


def is_observed(replicaset: ReplicaSet) -> bool:
    """Whether its status has observed its size. A size that never changed needs no observer."""
    generation = replicaset.generation
    return generation <= _CREATED or replicaset.status.observed_generation >= generation


def is_settled(replicaset: ReplicaSet, size_writes: SizeWrites) -> bool:
    """Whether its pods follow the size that is seen, and no other."""
    return replicaset.uid not in size_writes and is_observed(replicaset)


def everything(rollout: Rollout) -> tuple[ReplicaSet, ...]:
    """All its ReplicaSets in order of creation, the new one last whatever its age."""
    return rollout.old if rollout.new is None else (*rollout.old, rollout.new)


def most_pods(replicasets: Iterable[ReplicaSet], size_writes: SizeWrites) -> int:
    """The most active pods that they have or may get together."""
    return sum(count(replicaset, size_writes).high for replicaset in replicasets)


def awaited(replicasets: Iterable[ReplicaSet], size_writes: SizeWrites) -> str:
    """Who has yet to observe its size, for people; empty if nobody has."""
    for replicaset in replicasets:
        if not is_settled(replicaset, size_writes):
            return f"ReplicaSet {replicaset.name} is to observe its size"
    return ""


def resize(deployment: Deployment, replicaset: ReplicaSet, replicas: int, size_writes: SizeWrites) -> Update:
    """The write that gives it a size, which may be the one it has: then only what it remembers of the Deployment
    changes. Raises ValueError for limits that cannot be read.
    """
    size = replicaset.replicas
    low = high = size
    if not is_settled(replicaset, size_writes):
        write = size_writes.get(replicaset.uid, SizeWrite(0, UNKNOWN))
        low, high = min(size, write.low), max(size, write.high)
    return Update(
        replicaset,
        replicas,
        min(low, replicas),
        max(high, replicas),
        annotations.sizes(deployment),
        event=events.scaled(replicaset.name, size, replicas) if replicas != size else None,
    )
