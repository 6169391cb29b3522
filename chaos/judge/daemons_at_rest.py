"""Whether a DaemonSet is as it should be: the right nodes, the current revision, and a status that says so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from oarlock.chaos.judge.evidence.placing import Place, limit_of
from oarlock.chaos.judge.evidence.sightings import DaemonSetSeen, PodSeen, RevisionSeen


class Converged:
    """Told of every revision. ``why_not`` is "" where all is well."""

    def __init__(self) -> None:
        self._revisions: dict[str, dict[str, RevisionSeen]] = defaultdict(dict)

    def revision(self, seen: RevisionSeen) -> None:
        """One event."""
        for owned in self._revisions.values():
            owned.pop(seen.uid, None)
        if not seen.gone:
            self._revisions[seen.owner][seen.uid] = seen

    def why_not(self, daemons: DaemonSetSeen, places: Mapping[str, Place], pods: Collection[PodSeen]) -> str:
        """The first thing that is wrong. ``pods``: all that it controls."""
        if daemons.gone or daemons.deleting:
            return "it is being deleted"
        if daemons.observed != daemons.generation:
            return f"status is of generation {daemons.observed}, not {daemons.generation}"
        owned = self._revisions[daemons.uid].values()
        current = [each for each in owned if each.digest == daemons.digest]
        if len(current) != 1:
            return f"{len(current)} revisions hold its template"
        if current[0].number < max(each.number for each in owned):
            return f"its template's revision {current[0].number} is not the latest"
        by_node: dict[str, list[PodSeen]] = defaultdict(list)
        for pod in pods:
            by_node[pod.target].append(pod)
        paired = {node for node, here in by_node.items() if _is_pair(daemons, current[0].label, places.get(node), here)}
        return (
            _wrong_nodes(places, by_node, paired)
            or _wrong_pods(daemons, current[0].label, places, pods, paired)
            or _wrong_status(daemons, current[0].label, places, by_node)
        )


def _is_pair(daemons: DaemonSetSeen, label: str, place: Place | None, here: Collection[PodSeen]) -> bool:
    """Whether these are a surging set's pod and its successor, for which the node took no more pods meanwhile.

    Both stay: the old one is only deleted once the new one is available, and that waits for ever (upstream:
    pkg/controller/daemon/daemon_controller.go, podsShouldBeOnNode).
    """
    if place is None or place.runs or not place.stays or not daemons.surges or len(here) != 2:
        return False
    waiting = [pod for pod in here if pod.active and not pod.node and pod.revision == label]
    return len(waiting) == 1 and any(pod.active and pod.ready and pod.revision != label for pod in here)


def _wrong_nodes(places: Mapping[str, Place], by_node: Mapping[str, list[PodSeen]], paired: Collection[str]) -> str:
    for node, place in places.items():
        here = len(by_node.get(node, ()))
        if here != 1 and place.runs:
            return f"{here} pods on {node}, where one belongs"
        if here > place.stays and node not in paired:
            return f"{here} pods on {node}, where {'one may stay' if place.stays else 'none belongs'}"
    for node in by_node:
        if node not in places:
            return f"a pod on {node or 'no node'}, of which nothing is known"
    return ""


def _wrong_pods(
    daemons: DaemonSetSeen,
    label: str,
    places: Mapping[str, Place],
    pods: Collection[PodSeen],
    paired: Collection[str],
) -> str:
    # Made for a node that took it no more when it was to be bound: it may stay, and will wait for ever.
    waiting = {pod.uid for pod in pods if not pod.node and not places[pod.target].runs}
    # Where no node is to have a pod, a maxUnavailable in percent is 0, and old pods that may stay are not replaced. Nor
    # are they where those that wait are as many as may be unavailable.
    # Upstream: pkg/controller/daemon/update.go, updatedDesiredNodeCounts and rollingUpdate.
    limit = limit_of(daemons, sum(place.runs for place in places.values()))
    rolls = daemons.strategy == "RollingUpdate" and (daemons.surges or limit > len(waiting))
    for pod in pods:
        if not (pod.active and (pod.ready or pod.uid in waiting)):
            return f"pod {pod.name} on {pod.target} is not ready"
        if rolls and pod.target not in paired and (pod.version != daemons.version or pod.revision != label):
            return f"pod {pod.name} is of version {pod.version}, not {daemons.version}"
    return ""


def _wrong_status(
    daemons: DaemonSetSeen, label: str, places: Mapping[str, Place], by_node: Mapping[str, list[PodSeen]]
) -> str:
    """All pods are ready here; how long they are is not compared, only that the numbers of the status agree."""
    wanted = [node for node, place in places.items() if place.runs]
    pods = [by_node[node][0] for node in wanted]
    updated = sum(pod.revision == label for pod in pods)
    strays = sum(bool(by_node.get(node)) and not place.runs for node, place in places.items())
    for name, says, is_so in (
        ("desiredNumberScheduled", daemons.desired, len(wanted)),
        ("currentNumberScheduled", daemons.current, len(wanted)),
        ("numberMisscheduled", daemons.misscheduled, strays),
        ("numberReady", daemons.ready, len(wanted)),
        ("updatedNumberScheduled", daemons.updated, updated),
        ("numberAvailable", daemons.available, len(wanted)),
        ("numberUnavailable", daemons.unavailable, 0),
    ):
        if says != is_so:
            return f"status says {name} {says}, and it is {is_so}"
    return ""
