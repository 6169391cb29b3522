"""A change of the Deployment's size: each ReplicaSet that has pods gets its share of it.

Upstream: `pkg/controller/deployment/sync.go` (isScalingEvent, scale), `util/deployment_util.go` (GetReplicaSetFraction,
IsSaturated). Each ReplicaSet remembers in annotations for which size of the Deployment its own was decided, so that a
change that was made in part is ended later. Here an increase waits, with its annotations, until it fits beside the
pods that there may be.
"""

from collections.abc import Iterable, Sequence

from oarlock.controllers.deployment import annotations
from oarlock.controllers.deployment.model import RECREATE, Deployment
from oarlock.controllers.deployment.plan import Rollout, Update
from oarlock.controllers.deployment.sizing.limits import max_pods
from oarlock.controllers.deployment.sizing.recreate import others_gone
from oarlock.controllers.deployment.sizing.sizes import SizeWrites, Step, awaited, count, everything, most_pods, resize
from oarlock.controllers.objects.model import Pod, ReplicaSet


def is_scaling(deployment: Deployment, rollout: Rollout) -> bool:
    """Whether the size of a ReplicaSet with pods was decided for another size of the Deployment.

    Not for several of them under Recreate, which takes all but one of them away in any case: upstream would neither
    scale nor replace them for ever.
    """
    active = _active(everything(rollout))
    if deployment.strategy == RECREATE and len(active) > 1:
        return False
    return any(_decided_for_another_size(deployment, replicaset) for replicaset in active)


def scale(deployment: Deployment, rollout: Rollout, size_writes: SizeWrites, pods: Iterable[Pod] | None = None) -> Step:
    """The sizes for a Deployment that is paused or has got another size. Raises ValueError for limits that cannot be
    read.

    `pods`: as in `recreate.step`; they are asked for under Recreate where the first pods of a template would start.
    """
    active = _active(everything(rollout))
    if len(active) <= 1:
        return _scale_one(deployment, rollout, active, size_writes, pods)
    if _is_saturated(deployment, rollout.new, size_writes):
        return Step(tuple([resize(deployment, each, 0, size_writes) for each in _active(rollout.old)]))
    if deployment.strategy == RECREATE:
        return Step()
    return _scale_all(deployment, rollout, active, size_writes)


def _scale_one(
    deployment: Deployment,
    rollout: Rollout,
    active: Sequence[ReplicaSet],
    size_writes: SizeWrites,
    pods: Iterable[Pod] | None,
) -> Step:
    """The only one that has pods, or else the latest, gets the size of the Deployment.

    Its annotations are brought up to date even if it has that size, unlike upstream, where the change never ended.
    """
    if active:
        chosen = active[0]
    elif rollout.new is not None:
        chosen = rollout.new
    elif rollout.old:
        chosen = rollout.old[-1]
    else:
        return Step()
    replicas = deployment.replicas
    if chosen.replicas == replicas and not _decided_for_another_size(deployment, chosen):
        return Step()
    others = [each for each in everything(rollout) if each.uid != chosen.uid]
    if deployment.strategy == RECREATE and replicas and not active:
        rest = others_gone(others, size_writes, pods)
        if not rest.may_create:
            return rest
    update = resize(deployment, chosen, replicas, size_writes)
    fitting = _fitting(deployment, rollout, [update], size_writes)
    return Step(tuple(fitting), "" if fitting else _waiting(rollout, size_writes))


def _scale_all(deployment: Deployment, rollout: Rollout, active: Sequence[ReplicaSet], size_writes: SizeWrites) -> Step:
    """Each its share of the change, the largest first; what rounding leaves goes to the first.

    Of equal ones the newer comes first when pods are added, the older when they are taken away.
    """
    allowed = max_pods(deployment) if deployment.replicas else 0
    change = allowed - sum(replicaset.replicas for replicaset in active)
    by_age = sorted(active, key=lambda each: (each.created_ms, each.name), reverse=change > 0)
    order = sorted(by_age, key=lambda each: each.replicas, reverse=True)
    left, sizes = change, []
    for replicaset in order:
        share = 0
        if left:
            fraction = _fraction(deployment, replicaset)
            share = min(fraction, left) if change > 0 else max(fraction, left)
        sizes.append(replicaset.replicas + share)
        left -= share
    sizes[0] = max(0, sizes[0] + left)
    wanted = annotations.sizes(deployment)
    updates = [
        resize(deployment, replicaset, size, size_writes)
        for replicaset, size in zip(order, sizes, strict=True)
        if size != replicaset.replicas or not wanted.items() <= replicaset.annotations.items()
    ]
    fitting = _fitting(deployment, rollout, updates, size_writes)
    return Step(tuple(fitting), _waiting(rollout, size_writes) if len(fitting) < len(updates) else "")


def _fitting(
    deployment: Deployment, rollout: Rollout, updates: Iterable[Update], size_writes: SizeWrites
) -> list[Update]:
    """Without the increases that do not fit now. What gets smaller counts as before: its write may fail."""
    most, limit = most_pods(everything(rollout), size_writes), max_pods(deployment)
    fitting: list[Update] = []
    for update in updates:
        if update.replicas > update.replicaset.replicas:
            high = count(update.replicaset, size_writes).high
            others = most - high
            if others + update.replicas > limit:
                continue
            most = others + max(high, update.replicas)
        fitting.append(update)
    return fitting


def _waiting(rollout: Rollout, size_writes: SizeWrites) -> str:
    return awaited(everything(rollout), size_writes) or "pods beyond the sizes of their ReplicaSets are to go"


def _active(replicasets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    return [replicaset for replicaset in replicasets if replicaset.replicas]


def _decided_for_another_size(deployment: Deployment, replicaset: ReplicaSet) -> bool:
    desired = annotations.size_in(replicaset.annotations, annotations.DESIRED_REPLICAS)
    return desired is not None and desired != deployment.replicas


def _is_saturated(deployment: Deployment, new: ReplicaSet | None, size_writes: SizeWrites) -> bool:
    """Whether the new ReplicaSet alone makes up the Deployment: the old ones may go at once."""
    if new is None or new.replicas != deployment.replicas:
        return False
    desired = annotations.size_in(new.annotations, annotations.DESIRED_REPLICAS)
    return desired == deployment.replicas == count(new, size_writes).available


def _fraction(deployment: Deployment, replicaset: ReplicaSet) -> int:
    """How much it would grow or shrink by if it were alone, in proportion to what the Deployment was when its size was
    decided. Halves are rounded away from zero, before its size is taken off.
    """
    size = replicaset.replicas
    if not deployment.replicas:
        return -size
    base = annotations.size_in(replicaset.annotations, annotations.MAX_REPLICAS) or deployment.status.replicas
    if not base:
        return 0
    return (2 * size * max_pods(deployment) + base) // (2 * base) - size
