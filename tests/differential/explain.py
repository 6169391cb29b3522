"""Differences that are meant, each with the id of its line in docs/differences.md. Pure.

An explanation knows the one difference it is about: which field, in which direction, after which steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from differential.compare import Difference
from differential.hands import COST, MARK, Step
from differential.reading import ENDED
from differential.snapshot import Snapshot

Obj = dict[str, Any]
DELETED = "Normal SuccessfulDelete"


@dataclass(frozen=True)
class Moment:
    """When a difference was seen: after the last of these steps, in these snapshots."""

    steps: Sequence[Step]
    upstream: Snapshot
    fleet: Snapshot


@dataclass(frozen=True)
class Explanation:
    """`id`: of its line in docs/differences.md."""

    id: str
    covers: Callable[[Difference, Moment], bool]


def _deletion_cost(difference: Difference, moment: Moment) -> bool:
    """Of a ReplicaSet or ReplicationController scaled down with costs on its pods: upstream kept those with the fewest
    restarts, the fleet those with the highest cost, and each exactly these."""
    section, title, *_ = difference.path
    steps = [step for step in moment.steps if _title_of(step) == title]
    if section != "pods" or len(steps) < 3 or steps[-1].what != "change_spec" or steps[-2].what != "rank_pods":
        return False
    pods, restarts = steps[-3].about.get("annotations", [{}]), steps[-2].about["restarts"]
    if any(COST not in pod for pod in pods):
        return False
    count = steps[-1].about["spec"]["replicas"]
    cheapest_last = sorted(pods, key=lambda pod: -int(pod[COST]))
    fewest_first = [pod for _, pod in sorted(zip(restarts, pods, strict=True), key=lambda pair: pair[0])]
    kept = {"upstream": fewest_first[:count], "fleet": cheapest_last[:count]}
    return all(
        sorted(
            pod["annotations"][MARK] for pod in _pods(taken, title) if not pod["deleting"] and pod["phase"] == "Running"
        )
        == sorted(pod[MARK] for pod in kept[side])
        for side, taken in (("upstream", moment.upstream), ("fleet", moment.fleet))
    )


def _ended_and_held(difference: Difference, moment: Moment) -> bool:
    """A daemon pod has ended, is deleted, and hangs on a finalizer: the fleet has a running pod on its node, upstream
    has none until the pod has gone. One node, and what one node makes of the status and the events."""
    section, title, *rest = difference.path
    if not title.startswith("DaemonSet/"):
        return False
    held = {pod["node"] for pod in _pods(moment.upstream, title) if pod["deleting"] and pod["phase"] in ENDED}
    running = [
        {pod["node"] for pod in _pods(taken, title) if not pod["deleting"]} for taken in (moment.upstream, moment.fleet)
    ]
    if len(held) != 1 or not held <= running[1] - running[0]:
        return False
    more = (difference.fleet or 0) - (difference.upstream or 0) if not isinstance(difference.fleet, dict | list) else 0
    match section, *rest:
        case "events", "Normal SuccessfulCreate":
            return more == 1
        case "owners", "status", "numberReady" | "numberAvailable" | "updatedNumberScheduled":
            return more == 1
        case "owners", "status", "numberUnavailable":
            return more == -1
        case "pods", described:
            return more == 1 and orjson.loads(described)["node"] in held
    return False


def _deleted_twice(difference: Difference, moment: Moment) -> bool:
    """Upstream sent the delete of a daemon pod again, while its cache did not show it as deleted yet; that succeeds and
    is told as an event. Names of upstream's pods are never used again, so a repeated message is a repeated delete."""
    section, title, *rest = difference.path
    if section != "events" or rest != [DELETED] or not title.startswith("DaemonSet/"):
        return False
    again = moment.upstream["events"][title]["again"].get(DELETED, 0)
    return bool(0 < difference.upstream - difference.fleet <= again)


def _evicted(difference: Difference, moment: Moment) -> bool:
    """A NoExecute taint makes two delete the daemon pod, its controller and whoever evicts; who comes first is chance.
    One event more or less for each such taint."""
    section, title, *rest = difference.path
    if section != "events" or rest != [DELETED] or not title.startswith("DaemonSet/"):
        return False
    taints = sum(step.what == "taint_node" and step.about["effect"] == "NoExecute" for step in moment.steps)
    again = moment.upstream["events"][title]["again"].get(DELETED, 0)
    return bool(-taints <= difference.upstream - difference.fleet <= taints + again)


EXPLANATIONS = (
    Explanation("deletion-cost", _deletion_cost),
    Explanation("ended-and-held", _ended_and_held),
    Explanation("deleted-twice", _deleted_twice),
    Explanation("evicted", _evicted),
)


def explain(difference: Difference, moment: Moment) -> str:
    """The id of the first explanation that covers it, or an empty string."""
    return next((each.id for each in EXPLANATIONS if each.covers(difference, moment)), "")


def _title_of(step: Step) -> str:
    return f"{step.about.get('kind', '')}/{step.about.get('name', '')}"


def _pods(taken: Snapshot, title: str) -> list[Obj]:
    return [orjson.loads(text) for text, count in taken["pods"].get(title, {}).items() for _ in range(count)]
