"""Presence: a pod on every node that should have one, and none too many. Templates do not matter here, except on a node
that surges: it may keep one pod of the present revision and one older pod.

Upstream: `pkg/controller/daemon/daemon_controller.go` (manage, podsShouldBeOnNode, getUnscheduledPodsWithoutNode).
"""

from collections.abc import Mapping
from typing import NamedTuple

from oarlock.controllers.daemonset.backoff import BackOff, next_entry, waiting_ms
from oarlock.controllers.daemonset.limits import surges
from oarlock.controllers.daemonset.plan import DaemonSnapshot
from oarlock.controllers.daemonset.podmap import PodMap, sort_key
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.objects.availability import is_available
from oarlock.controllers.objects.model import FINISHED_PHASES, Pod
from oarlock.controllers.pods.events import Event, failed_pod, succeeded_pod

CONFIRMED_AGAIN_MS = 10_000
"""When to look again whether the view of the nodes was confirmed: if nothing changed, no event says so."""


class Doomed(NamedTuple):
    """A pod to delete, its event, and the back-off of its node, which is announced before the delete is sent."""

    pod: Pod
    event: Event | None = None
    back_off: BackOff | None = None

    @property
    def rests(self) -> bool:
        """Whether its name is not used again at once, so that a client which polls it by name sees that it has gone."""
        return self.pod.phase == "Failed"


class Managed(NamedTuple):
    """What presence needs, before the burst limit: the nodes to create a pod on, and the pods to delete.

    `again_ms`: until the first waiting pod may be deleted; None if none waits. `held_back`: stale node data keeps pods
    that would be deleted otherwise.
    """

    create_on: list[str]
    delete: list[Doomed]
    again_ms: int | None
    held_back: bool = False


def manage(snapshot: DaemonSnapshot, podmap: PodMap, eligible: Mapping[str, tuple[bool, bool]], now_ms: int) -> Managed:
    """Compare the nodes with the pods on them. `podmap`: without pods that are finished and being deleted.

    `eligible`: for each node, in order of names, whether a pod should run there and whether one may stay.
    """
    create_on: list[str] = []
    delete: list[Doomed] = []
    waits_ms: list[int] = []
    held_back = False
    surge = surges(snapshot.owner)
    for node, (should_run, should_continue) in eligible.items():
        pods = podmap.get(node)
        if pods is None:
            if should_run:
                create_on.append(node)
        elif not should_continue:
            misplaced = [Doomed(pod) for pod in pods if not pod.deleting_ms]
            held_back = held_back or (snapshot.nodes_old and bool(misplaced))
            delete += () if snapshot.nodes_old else misplaced
        elif len(pods) > 1 or pods[0].deleting_ms or pods[0].phase in FINISHED_PHASES:
            running, ended, wait_ms = _sorted_out(snapshot, node, pods, now_ms)
            delete += ended
            if wait_ms:
                waits_ms.append(wait_ms)
            if surge and not running and should_run:
                create_on.append(node)
            elif len(running) > 1:
                too_many = _too_many(snapshot, running, now_ms) if surge else _all_but_one(snapshot, running)
                delete += map(Doomed, too_many)
    stranded = _stranded(snapshot, podmap)
    held_back = held_back or (snapshot.nodes_old and bool(stranded))
    delete += () if snapshot.nodes_old else map(Doomed, stranded)
    if held_back:
        waits_ms.append(CONFIRMED_AGAIN_MS)
    return Managed(create_on, delete, min(waits_ms, default=None), held_back)


def _all_but_one(snapshot: DaemonSnapshot, running: list[Pod]) -> list[Pod]:
    """The pods to delete from a node that does not surge. A pod that may have gone is not the one to keep."""
    may_go = snapshot.unanswered.deletes
    staying = next((pod for pod in running if pod.uid not in may_go), None)
    return [pod for pod in running if pod is not staying] if staying is not None else []


def _sorted_out(
    snapshot: DaemonSnapshot, node: str, pods: list[Pod], now_ms: int
) -> tuple[list[Pod], list[Doomed], int]:
    """The pods of one node: those that run, the one to keep first; those that have ended and are deleted now; and how
    long the next failed one waits, 0 if none does. Pods being deleted are in neither list.

    Only one failed pod is deleted at a time, since its back-off holds for the next one.
    """
    generation = snapshot.owner.status.observed_generation
    entry = snapshot.back_offs.get(node)
    running: list[Pod] = []
    ended: list[Doomed] = []
    wait_ms = 0
    for pod in sorted(pods, key=sort_key):
        if pod.deleting_ms:
            continue
        if pod.phase == "Failed":
            if pod.uid in snapshot.unanswered.deletes:
                ended.append(Doomed(pod))  # its back-off began when this delete was announced
                continue
            wait_ms = waiting_ms(entry, generation, now_ms)
            if not wait_ms:
                entry = next_entry(entry, generation, now_ms)
                ended.append(Doomed(pod, failed_pod(pod), entry))
        elif pod.phase == "Succeeded":
            ended.append(Doomed(pod, succeeded_pod(pod)))
        else:
            running.append(pod)
    return running, ended, wait_ms


def _too_many(snapshot: DaemonSnapshot, running: list[Pod], now_ms: int) -> list[Pod]:
    """The pods to delete from a node that surges: all but one pod of the present revision and one older pod. The older
    one is deleted too once it is not ready or the new one is available.

    Of several alike the first stays, unless a later one is available and the first is not. Upstream would delete the
    only available pod when a third revision comes while the second one is broken.
    """
    min_ready_seconds, may_go = snapshot.owner.min_ready_seconds, snapshot.unanswered.deletes

    def serves(pod: Pod) -> bool:
        return pod.uid not in may_go and is_available(pod, min_ready_seconds, now_ms)

    def best(pods: list[Pod]) -> Pod | None:
        return min(pods, key=lambda pod: (pod.uid in may_go, not serves(pod), not pod.ready), default=None)

    new = best([pod for pod in running if pod.labels.get(HASH_LABEL) == snapshot.revision])
    old = best([pod for pod in running if pod.labels.get(HASH_LABEL) != snapshot.revision])
    surplus = [pod for pod in running if pod is not new and pod is not old]
    if new and old and new.uid not in may_go and (not old.ready or serves(new)):
        surplus.append(old)
    return surplus


def _stranded(snapshot: DaemonSnapshot, podmap: PodMap) -> list[Pod]:
    """Unassigned pods for nodes that have gone. Nothing will assign them, and the collector of pods takes assigned ones
    only.
    """
    gone = sorted(node for node in podmap if node not in snapshot.nodes)
    return [pod for node in gone for pod in podmap[node] if not pod.node_name and not pod.deleting_ms]
