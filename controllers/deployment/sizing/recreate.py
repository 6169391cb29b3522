"""Recreate: every pod of the old templates goes before the first one of the new template starts.

Upstream: `pkg/controller/deployment/recreate.go`. It goes by the cached status and pods of the old ReplicaSets; here
their sizes have to be observed too, so that none of them can start a pod any more.
"""

from collections.abc import Iterable

from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.deployment.plan import Rollout
from oarlock.controllers.deployment.sizing.sizes import SizeWrites, Step, awaited, resize
from oarlock.controllers.objects.model import Pod, ReplicaSet, controller_of, is_finished


def step(deployment: Deployment, rollout: Rollout, size_writes: SizeWrites, pods: Iterable[Pod] | None) -> Step:
    """The old ReplicaSets to 0; once none of their pods is left, the new one to its size, or created.

    `pods`: those of all its ReplicaSets, in any phase; None: only asked for when they decide. Raises ValueError for
    limits that cannot be read.
    """
    active = [replicaset for replicaset in rollout.old if replicaset.replicas]
    if active:
        return Step(tuple([resize(deployment, replicaset, 0, size_writes) for replicaset in active]))
    new = rollout.new
    if new is not None and new.replicas == deployment.replicas:
        return Step()
    rest = others_gone(rollout.old, size_writes, pods)
    if not rest.may_create or new is None:
        return rest
    return Step((resize(deployment, new, deployment.replicas, size_writes),))


def others_gone(others: Iterable[ReplicaSet], size_writes: SizeWrites, pods: Iterable[Pod] | None) -> Step:
    """Whether pods of another template may start: these ReplicaSets have no pod and will get none.

    A pod that is ending counts until it has finished or is gone.
    """
    by_uid = {replicaset.uid: replicaset for replicaset in others}
    unobserved = awaited(by_uid.values(), size_writes)
    if unobserved:
        return Step(waiting_for=unobserved)
    for replicaset in by_uid.values():
        if replicaset.replicas or replicaset.status.replicas:
            return Step(waiting_for=f"the pods of ReplicaSet {replicaset.name} are to go")
    if pods is None and by_uid:
        return Step(wants_pods=True)
    for pod in pods or ():
        ref = controller_of(pod)
        if ref is not None and ref.uid in by_uid and not is_finished(pod):
            return Step(waiting_for=f"pod {pod.name} of ReplicaSet {by_uid[ref.uid].name} is to go")
    return Step(may_create=True)
