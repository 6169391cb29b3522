"""The decision of a DaemonSet: presence first, then a step of the rolling update, then the history's surplus.

Upstream: `pkg/controller/daemon/daemon_controller.go` (syncDaemonSet, updateDaemonSet, syncNodes). Unlike there, a
create is identified by its name (see names.py), a delete by its UID, and both phases read the same snapshot.
"""

from collections.abc import Container, Iterable, Mapping

import msgspec

from oarlock.controllers.daemonset.backoff import is_over
from oarlock.controllers.daemonset.limits import pods_per_node
from oarlock.controllers.daemonset.manage import CONFIRMED_AGAIN_MS, Doomed, manage
from oarlock.controllers.daemonset.model import ROLLING_UPDATE
from oarlock.controllers.daemonset.names import Names, Taken, choose, expected_on
from oarlock.controllers.daemonset.plan import DaemonSnapshot
from oarlock.controllers.daemonset.podmap import PodMap, pod_map
from oarlock.controllers.daemonset.rolling import Rolling, rolling
from oarlock.controllers.daemonset.status import counts, look_again_ms
from oarlock.controllers.flavour import DAEMONSET, Flavour
from oarlock.controllers.history.decide import prunable
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.ownership.claim import claim
from oarlock.controllers.plan import Plan
from oarlock.controllers.pods.events import SELECTING_ALL
from oarlock.controllers.scheduling.eligibility import eligibility_of


def decide(snapshot: DaemonSnapshot, now_ms: int, flavour: Flavour = DAEMONSET) -> Plan:
    """What one turn does about the owner's pods and old revisions; `now_ms` is wall-clock time.

    Until the cache shows our answered writes, pods are claimed and counted, nothing else. Stale node data deletes no
    pods and stops the rolling update, whose limits depend on the number of nodes.
    """
    owner = snapshot.owner
    selector = owner.selector
    if selector is None or selector.empty:
        return Plan(invalid="the selector is empty", events=(SELECTING_ALL,))
    if selector.error:
        return Plan(invalid=selector.error)
    if owner.deleting_ms:
        return Plan(invalid="being deleted")
    claims = claim(owner, snapshot.pods).carried_out(snapshot.adopted)
    claimed = claims.claimed
    podmap = pod_map(claimed)
    eligibility = eligibility_of(owner.placement)
    eligible = {name: eligibility.eligible(node) for name, node in snapshot.nodes.items()}
    counted = counts(owner, podmap, eligible, snapshot.revision, now_ms)
    again_ms = look_again_ms(owner, claimed, counted, now_ms, now_ms)
    plan = Plan(
        adopt=tuple(claims.adopt),
        release=tuple(claims.release),
        claimed=tuple(claimed),
        revision=snapshot.revision,
        counts=counted,
        observed=snapshot.satisfied,
        again_ms=again_ms,
    )
    if not snapshot.satisfied:
        return plan

    presence = manage(snapshot, podmap, eligible, now_ms)
    quiet, burst = snapshot.unanswered.quiet, flavour.burst
    nodes = _named(snapshot, claimed, podmap, presence.create_on, 1, burst)
    doomed, step = _cut(presence.delete, quiet, burst), Rolling()
    waits_ms = [ms for ms in (again_ms, presence.again_ms) if ms is not None]
    may_roll = not nodes and not doomed and not presence.held_back and _may_roll(snapshot, claimed)
    if may_roll and snapshot.nodes_old:
        waits_ms.append(CONFIRMED_AGAIN_MS)
    elif may_roll:
        step = rolling(snapshot, podmap, eligible, now_ms, _expected(snapshot, claimed, podmap))
        nodes = _named(snapshot, claimed, podmap, step.create_on, 2, burst)
        doomed = _cut(map(Doomed, step.delete), quiet, burst)
    return msgspec.structs.replace(
        plan,
        create=tuple(nodes),
        nodes=nodes,
        delete=tuple([(each.pod.name, each.pod.uid) for each in doomed]),
        events=tuple([each.event for each in doomed if each.event]),
        back_offs=tuple([(each.pod.target_node, each.back_off.text) for each in doomed if each.back_off]),
        again_ms=min(waits_ms, default=None),
        error=step.error,
        rests=frozenset([each.pod.uid for each in doomed if each.rests]),
        forget=tuple([node for node, entry in snapshot.back_offs.items() if is_over(entry, owner, now_ms)]),
        prune=() if step.error else _surplus_revisions(snapshot, claimed),
    )


def _named(
    snapshot: DaemonSnapshot, claimed: list[Pod], podmap: PodMap, nodes: Iterable[str], wanted: int, burst: int
) -> Mapping[str, str]:
    """Names for one more pod on each node with fewer than `wanted` active ones: the node by pod name."""
    if not nodes:
        return {}
    owner = snapshot.owner
    names, limit = Names(owner.name, owner.uid), pods_per_node(owner)
    return choose(names, nodes, podmap, _taken(snapshot, claimed), wanted, limit, burst)


def _expected(snapshot: DaemonSnapshot, claimed: list[Pod], podmap: PodMap) -> Container[str]:
    """Nodes whose announced create may have succeeded without the cache showing the pod yet."""
    if not snapshot.unanswered.creates:
        return ()
    return expected_on(podmap, _taken(snapshot, claimed))


def _taken(snapshot: DaemonSnapshot, claimed: list[Pod]) -> Taken:
    return Taken(snapshot.pods, claimed, snapshot.unanswered, snapshot.blocked)


def _cut(doomed: Iterable[Doomed], quiet: Container[str], burst: int) -> list[Doomed]:
    """Those whose delete may be sent now."""
    return [each for each in doomed if each.pod.uid not in quiet][:burst]


def _may_roll(snapshot: DaemonSnapshot, claimed: list[Pod]) -> bool:
    """Whether a rolling update could find a pod to replace: to compute one for many nodes is costly."""
    revision = snapshot.revision
    return snapshot.owner.strategy == ROLLING_UPDATE and any(pod.labels.get(HASH_LABEL) != revision for pod in claimed)


def _surplus_revisions(snapshot: DaemonSnapshot, claimed: list[Pod]) -> tuple[ControllerRevision, ...]:
    """Old revisions beyond the limit, without those of a living or an ending pod."""
    limit = snapshot.owner.revision_history_limit
    if len(snapshot.old_revisions) <= limit:
        return ()
    live = {pod.labels.get(HASH_LABEL, "") for pods in pod_map(claimed, include_ended=True).values() for pod in pods}
    return prunable(snapshot.old_revisions, live, limit)
