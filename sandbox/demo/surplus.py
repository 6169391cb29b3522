"""Counts from what a watch saw: pods too many, nodes with two daemon pods, what was down while pods were replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oarlock.sandbox.demo.seen import DaemonsSeen, DeploymentSeen, PodSeen, Seen, SetSeen


def pods_too_many(events: Iterable[Seen]) -> dict[str, int]:
    """Per ReplicaSet and ReplicationController (by title), by how many its active pods exceeded what was allowed; {} is
    the promise.

    Allowed is the largest ``replicas`` since the set was last at rest: after a scale-down the pods above are on their
    way out, and creates may still be under way. A set is at rest when it has as many active pods as it asks for and its
    status says so. Counted are pods that became active above that bound. ``events`` in the order of revisions.
    """
    sets: dict[str, SetSeen] = {}
    bound: dict[str, int] = {}
    active: dict[str, set[str]] = {}
    owner_of: dict[str, str] = {}
    excess: dict[str, int] = {}
    others: set[str] = set()

    for seen in events:
        if isinstance(seen, DaemonsSeen | DeploymentSeen):
            others.add(seen.uid)
            continue
        if isinstance(seen, SetSeen):
            sets[seen.uid] = seen
            at_rest = seen.settled and len(active.get(seen.uid, ())) == seen.wanted
            bound[seen.uid] = seen.wanted if at_rest else max(bound.get(seen.uid, 0), seen.wanted)
            continue
        before = owner_of.get(seen.uid, "")
        was_active = seen.uid in active.get(before, ())
        if was_active:
            active[before].discard(seen.uid)
        owner_of[seen.uid] = seen.owner_uid
        if not seen.active or not seen.owner_uid or seen.owner_uid in others:
            continue
        active.setdefault(seen.owner_uid, set()).add(seen.uid)
        over = len(active[seen.owner_uid]) - bound.get(seen.owner_uid, 0)
        if over > 0 and not (was_active and before == seen.owner_uid):
            key = sets[seen.owner_uid].title if seen.owner_uid in sets else seen.owner_uid
            excess[key] = max(excess.get(key, 0), over)
    return excess


def duplicate_daemons(events: Iterable[Seen]) -> dict[str, int]:
    """Per DaemonSet (by title), the most pods above one that a node ever had (above two for one that surges); {} is the
    promise.

    Counted are pods that are there, finished or not, and not terminating, by the node they are on or made for. Those
    that were adopted or whose set was never seen are not counted. ``events`` in the order of revisions.
    """
    daemons: dict[str, DaemonsSeen] = {}
    surged: set[str] = set()
    first_owner: dict[str, str] = {}
    at: dict[str, tuple[str, str]] = {}
    there: dict[tuple[str, str], set[str]] = {}
    excess: dict[str, int] = {}

    for seen in events:
        if isinstance(seen, DaemonsSeen):
            daemons[seen.uid] = seen
            if seen.surges:
                surged.add(seen.uid)
        if not isinstance(seen, PodSeen):
            continue
        there.get(at.pop(seen.uid, ("", "")), set()).discard(seen.uid)
        adopted = first_owner.setdefault(seen.uid, seen.owner_uid) != seen.owner_uid
        if not seen.present or adopted or seen.owner_uid not in daemons or not seen.node:
            continue
        place = at[seen.uid] = seen.owner_uid, seen.node
        there.setdefault(place, set()).add(seen.uid)
        over = len(there[place]) - (2 if seen.owner_uid in surged else 1)
        if over > 0:
            title = daemons[seen.owner_uid].title
            excess[title] = max(excess.get(title, 0), over)
    return excess


def most_nodes_down(events: Sequence[Seen], daemons_uid: str, from_rv: int, min_ready_s: int = 0) -> int:
    """How many nodes were without an available pod of a DaemonSet at the same time, at most, after a revision.

    Of the nodes that had one at that revision; whatever took it down. ``events`` in the order of revisions.
    """
    pods: dict[str, PodSeen] = {}
    own = [seen for seen in events if isinstance(seen, PodSeen) and seen.owner_uid == daemons_uid]
    begin = next((at for at, seen in enumerate(own) if seen.rv > from_rv), len(own))
    for seen in own[:begin]:
        _keep(pods, seen)
    nodes = {pod.node for pod in pods.values()}
    most = 0
    for seen in own[begin:]:
        _keep(pods, seen)
        up = {pod.node for pod in pods.values() if pod.available(min_ready_s, seen.at_ms)}
        most = max(most, len(nodes - up))
    return most


def most_and_fewest(events: Sequence[Seen], deployment_uid: str, from_rv: int, min_ready_s: int = 0) -> tuple[int, int]:
    """The most active pods a Deployment had after a revision, and the fewest of them that were available.

    Of all its ReplicaSets together; whatever made or took them. ``events`` in the order of revisions.
    """
    sets = {seen.uid for seen in events if isinstance(seen, SetSeen) and seen.owner_uid == deployment_uid}
    pods: dict[str, PodSeen] = {}
    counts = []
    for seen in events:
        if not isinstance(seen, PodSeen) or seen.owner_uid not in sets:
            continue
        _keep(pods, seen)
        if seen.rv > from_rv:
            active = [pod for pod in pods.values() if pod.active]
            counts.append((len(active), sum(pod.available(min_ready_s, seen.at_ms) for pod in active)))
    return max((most for most, _ in counts), default=0), min((fewest for _, fewest in counts), default=0)


def _keep(pods: dict[str, PodSeen], seen: PodSeen) -> None:
    if seen.present:
        pods[seen.uid] = seen
    else:
        pods.pop(seen.uid, None)
