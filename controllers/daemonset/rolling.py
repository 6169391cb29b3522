"""One step of replacing old pods by new ones, within the limits of the update strategy.

It runs only when presence has nothing to write. Later turns create what it deletes anew, or remove its surplus.
Upstream: `pkg/controller/daemon/update.go` (rollingUpdate, findUpdatedPodsOnNode). Upstream stops collecting candidates
at a limit; the result is the same, since further candidates are not used.
"""

from collections.abc import Collection, Container, Iterable, Mapping

import msgspec

from oarlock.controllers.daemonset.limits import max_surge, max_unavailable, pods_per_node
from oarlock.controllers.daemonset.model import ROLLING_UPDATE, DaemonSet
from oarlock.controllers.daemonset.plan import DaemonSnapshot
from oarlock.controllers.daemonset.podmap import PodMap, is_updated
from oarlock.controllers.objects.availability import is_available
from oarlock.controllers.objects.model import Pod


class Rolling(msgspec.Struct, frozen=True):
    """Pods to delete, and nodes to create a pod on, in the order of sending and before the burst limit.

    `error`: why the step could not be computed.
    """

    delete: tuple[Pod, ...] = ()
    create_on: tuple[str, ...] = ()
    error: str = ""


def rolling(
    snapshot: DaemonSnapshot,
    podmap: PodMap,
    eligible: Mapping[str, tuple[bool, bool]],
    now_ms: int,
    expected: Container[str] = (),
) -> Rolling:
    """The step for pods as they are at `now_ms`. Nothing for any other strategy, such as OnDelete.

    `podmap`: without pods that are finished and being deleted. `eligible`: for each node, whether a pod should
    run there and whether one may stay. Nodes are taken in order of their names. `expected`: nodes whose announced
    create may have succeeded without the cache showing the pod yet.

    A pod whose delete has no answer counts as unavailable, since it may have gone. Its delete is sent again only
    instead of another pod's.
    """
    owner = snapshot.owner
    if owner.strategy != ROLLING_UPDATE:
        return Rolling()
    desired = [node for node, (should_run, _) in eligible.items() if should_run]
    try:
        unavailable_limit = max_unavailable(owner, len(desired))
        surge_limit = max_surge(owner, len(desired))
    except ValueError as err:
        return Rolling(error=f"rolling update of {owner.key}: {err}")
    if surge_limit == 0:
        return _without_surge(snapshot, podmap, desired, unavailable_limit, now_ms)
    return _with_surge(snapshot, podmap, eligible, len(desired), surge_limit, now_ms, expected)


def _without_surge(
    snapshot: DaemonSnapshot, podmap: PodMap, desired: Iterable[str], limit: int, now_ms: int
) -> Rolling:
    """Delete old pods: all that are unavailable anyway, and of the others as many as the limit allows.

    A node is available if exactly one pod stays there and it is available. Nodes that have gone or should not run the
    pod count too.
    """
    owner, revision, may_go = snapshot.owner, snapshot.revision, snapshot.unanswered.deletes
    unavailable = 0
    must_replace: list[Pod] = []
    again: list[Pod] = []
    candidates: list[Pod] = []
    for node in sorted(podmap.keys() | desired):
        new, old, _ = _staying(podmap.get(node, ()), owner, revision)
        only = new or old
        if only is None or (new and old):
            unavailable += 1
        elif is_available(only, owner.min_ready_seconds, now_ms):
            if old:
                (again if old.uid in may_go else candidates).append(old)
            elif only.uid in may_go:
                unavailable += 1
        else:
            unavailable += 1
            if old:
                must_replace.append(old)
    return Rolling(delete=(*must_replace, *(again + candidates)[: max(0, limit - unavailable)]))


def _with_surge(
    snapshot: DaemonSnapshot,
    podmap: PodMap,
    eligible: Mapping[str, tuple[bool, bool]],
    desired: int,
    limit: int,
    now_ms: int,
    expected: Container[str],
) -> Rolling:
    """Create new pods beside old ones: on each node whose old pod is unavailable, and on others up to the limit. Delete
    the old ones whose successors are available.

    A pod on a node that should no longer run one stays until another node makes up for it. A full node with an ending
    pod does not count against the limit, since it gets no new pod before that one has gone.
    """
    owner, revision, may_go = snapshot.owner, snapshot.revision, snapshot.unanswered.deletes
    room = pods_per_node(owner)
    surging = available = 0
    delete: list[Pod] = []
    going: list[Pod] = []
    leaving: list[Pod] = []
    must_surge: list[str] = []
    again: list[str] = []
    candidates: list[str] = []
    for node in sorted(podmap):
        new, old, excess = _staying(podmap[node], owner, revision)
        if excess:
            surging += 1
            continue
        first = old or new
        first_is_available = first is not None and is_available(first, owner.min_ready_seconds, now_ms)
        may_have_gone = first is not None and first.uid in may_go
        available += first_is_available and not may_have_gone
        if old is None:
            continue
        if new is not None:
            if new.uid not in may_go and is_available(new, owner.min_ready_seconds, now_ms):
                delete.append(old)
            else:
                surging += 1
            continue
        if node not in snapshot.nodes:
            return Rolling(error=f"rolling update of {owner.key}: pod {old.name} is on node {node}, which is not known")
        should_run, _ = eligible[node]
        if should_run:
            if len(podmap[node]) < room:
                (must_surge if not first_is_available else again if node in expected else candidates).append(node)
        elif first_is_available:
            (going if may_have_gone else leaving).append(old)
        else:
            delete.append(old)
    return Rolling(
        delete=(*delete, *(going + leaving)[: max(0, available + len(going) - desired)]),
        create_on=(*must_surge, *(again + candidates)[: max(0, limit - surging)]),
    )


def _staying(pods: Collection[Pod], owner: DaemonSet, revision: str) -> tuple[Pod | None, Pod | None, bool]:
    """Of a node's pods that are not being deleted: the new one, the old one, and whether there are several of either;
    then neither is returned.
    """
    new: Pod | None = None
    old: Pod | None = None
    for pod in pods:
        if pod.deleting_ms:
            continue
        if is_updated(pod, revision, owner.template_generation):
            if new is not None:
                return None, None, True
            new = pod
        elif old is not None:
            return None, None, True
        else:
            old = pod
    return new, old, False
