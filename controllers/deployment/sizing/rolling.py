"""A rolling update: the new ReplicaSet grows as far as the surge allows, the old ones shrink as far as enough pods stay
available; both in one step, as neither counts on the other. Upstream does one of them in a sync, the new side first.

Upstream: `pkg/controller/deployment/rolling.go`, `util/deployment_util.go` (NewRSNewReplicas). With every size observed
the steps are upstream's. Otherwise each ReplicaSet counts with the most pods that it may have where pods are added, and
with the fewest where they are taken away (see sizes.py).
"""

from oarlock.controllers.deployment.model import RECREATE, Deployment
from oarlock.controllers.deployment.plan import Rollout, Update
from oarlock.controllers.deployment.sizing.limits import max_pods, min_available
from oarlock.controllers.deployment.sizing.sizes import SizeWrites, Step, awaited, count, everything, most_pods, resize
from oarlock.controllers.objects.model import ReplicaSet


def roll(deployment: Deployment, rollout: Rollout, size_writes: SizeWrites) -> Step:
    """One step. Raises ValueError for limits that cannot be read.

    A new ReplicaSet that is made smaller goes alone: the old ones may not count on the pods that it loses.
    """
    new = rollout.new
    updates: tuple[Update, ...] = ()
    if new is not None:
        size = min(deployment.replicas, max(new.replicas, size_of_new(deployment, rollout, size_writes)))
        if size != new.replicas:
            updates = (resize(deployment, new, size, size_writes),)
        if size < new.replicas:
            return Step(updates)
    updates += _shrink(deployment, rollout, size_writes)
    return Step(updates, "" if updates else awaited(everything(rollout), size_writes))


def size_of_new(deployment: Deployment, rollout: Rollout, size_writes: SizeWrites) -> int:
    """The size that the new ReplicaSet may have beside the old ones, by the strategy; never less than it has.

    Raises ValueError for limits that cannot be read.
    """
    if deployment.strategy == RECREATE:
        return deployment.replicas
    present = 0 if rollout.new is None else rollout.new.replicas
    room = max_pods(deployment) - most_pods(rollout.old, size_writes)
    return max(present, min(deployment.replicas, room))


def _shrink(deployment: Deployment, rollout: Rollout, size_writes: SizeWrites) -> tuple[Update, ...]:
    """The old ReplicaSets made smaller: first by pods that are not available, then by available ones. Oldest first.

    Pods that are not available may go as far as enough pods would stay if all of them became available.
    """
    floor = min_available(deployment)
    available_new = 0 if rollout.new is None else count(rollout.new, size_writes).available
    spare_available = available_new + sum(count(each, size_writes).available for each in rollout.old) - floor
    spare = available_new + sum(_size_to_come(each, size_writes) for each in rollout.old) - floor

    updates: list[Update] = []
    for replicaset in rollout.old:
        size, present = replicaset.replicas, replicaset.status.available
        least = _size_to_come(replicaset, size_writes)
        # What may have been taken already: both figures lack it.
        asked, asked_available = size - least, min(present, size) - min(present, least)
        unavailable = min(max(spare + asked, 0), max(0, size - present))
        spare -= max(0, unavailable - asked)
        available = min(max(spare_available + asked_available, 0), size - unavailable)
        spare_available -= max(0, available - asked_available)
        after = size - unavailable - available
        if after != size:
            updates.append(resize(deployment, replicaset, after, size_writes))
    return tuple(updates)


def _size_to_come(replicaset: ReplicaSet, size_writes: SizeWrites) -> int:
    """Its size, or the smallest that a write without an answer may leave it. What that write asked for is not known:
    the smallest may be one from before it was made larger. So what it may be asked for now is reckoned anew.
    """
    write = size_writes.get(replicaset.uid)
    return min(replicaset.replicas, write.low) if write is not None and write.open else replicaset.replicas
