"""Differences that are meant, of DaemonSets. Pure."""

from __future__ import annotations

import orjson

from tests.differential import rules
from tests.differential.compare import GENERATION, Difference
from tests.differential.moment import Explanation, Moment, Obj, pods, surplus, title_of
from tests.differential.reading import ENDED
from tests.differential.snapshot import Snapshot

CREATED, DELETED = "Normal SuccessfulCreate", "Normal SuccessfulDelete"
SUCCEEDED = "Normal SucceededDaemonPod"
_MISSCHEDULED = "numberMisscheduled"
_COUNTS_UP = ("numberReady", "numberAvailable", "updatedNumberScheduled")


def ended_and_held(difference: Difference, moment: Moment) -> bool:
    """A daemon pod has ended, is deleted, and hangs on a finalizer: the fleet has a running pod on its node, upstream
    has none until the pod has gone. One node, and what one node makes of the status and the events."""
    _, title, *_ = difference.path
    held = {pod["node"] for pod in pods(moment.upstream, title) if pod["deleting"] and pod["phase"] in ENDED}
    return len(held) == 1 and held <= _running_nodes(moment, title) and _is_one_pod_more(difference, held)


def succeeded(difference: Difference, moment: Moment) -> bool:
    """A daemon pod has succeeded: the fleet deletes it, says so and makes another; upstream 1.20 leaves it."""
    section, title, *rest = difference.path
    if not title.startswith("DaemonSet/"):
        return False
    asked = sum(step.what == "end_pod" and step.about["phase"] == "Succeeded" for step in moment.steps_of(title))
    told = moment.fleet["events"].get(title, {}).get("counts", {}).get(SUCCEEDED, 0)
    if not asked or told > asked:
        return False
    if section == "events":
        if rest == [DELETED]:  # an event each, and what chance adds to them (evicted, deleted_twice)
            taints = _evicting_taints(moment, title)
            least = told - taints - _deleted_again(moment, title)
            return bool(told) and least <= surplus(difference) <= told + taints
        return (rest == [SUCCEEDED] and surplus(difference) == told) or _is_created_for_it(difference)
    left = {pod["node"] for pod in pods(moment.upstream, title) if pod["phase"] == "Succeeded" and not pod["deleting"]}
    if len(left) != 1 or not left <= _running_nodes(moment, title):
        return False
    if section == "pods":
        described = orjson.loads(rest[0])
        if described["phase"] == "Succeeded":
            return surplus(difference) == -1 and described["node"] in left
    return _is_one_pod_more(difference, left)


def _is_created_for_it(difference: Difference) -> bool:
    return difference.path[2] == CREATED and surplus(difference) == 1


def _running_nodes(moment: Moment, title: str) -> set[str]:
    """Nodes with a running pod of the fleet's and none of upstream's."""
    there = [
        {pod["node"] for pod in pods(taken, title) if pod["phase"] == "Running" and not pod["deleting"]}
        for _, taken in moment.sides()
    ]
    return there[1] - there[0]


def _is_one_pod_more(difference: Difference, nodes: set[str]) -> bool:
    section, title, *rest = difference.path
    if not title.startswith("DaemonSet/"):
        return False
    more = surplus(difference)
    match section, *rest:
        case "events", reason:
            return reason == CREATED and more == 1
        case "owners", "status", "numberUnavailable":
            return more == -1
        case "owners", "status", name:
            return name in _COUNTS_UP and more == 1
        case "pods", described:
            return more == 1 and orjson.loads(described)["node"] in nodes
    return False


def template_generation(difference: Difference, moment: Moment) -> bool:
    """A new set adopts pods of another template with the generation that its own has: for the fleet they are of its
    present template, for upstream 1.20, which looks at the hash alone, they are not and are replaced."""
    section, title, *rest = difference.path
    if not title.startswith("DaemonSet/") or not _was_orphaned_and_made_again(moment, title):
        return False
    theirs, ours = pods(moment.upstream, title), pods(moment.fleet, title)
    newest = max((pod["revision"] for pod in theirs if isinstance(pod["revision"], int)), default=0)
    ours_now = moment.fleet["owners"].get(title, {})
    generation = ours_now.get("annotations", {}).get("deprecated.daemonset.template.generation")
    older = [pod for pod in ours if pod["revision"] != newest]
    if not older or any(pod["revision"] != newest for pod in theirs):
        return False
    if any(pod["labels"].get(GENERATION) != generation for pod in older):
        return False
    if section == "events":
        repeated = _deleted_again(moment, title) if rest == [DELETED] else 0
        return rest[0] in (CREATED, DELETED) and 0 < -surplus(difference) <= len(older) + repeated
    if section == "pods":
        return orjson.loads(rest[0])["revision"] == newest or surplus(difference) > 0
    return section == "revisions" and surplus(difference) == 1


def _was_orphaned_and_made_again(moment: Moment, title: str) -> bool:
    """And nothing was done to it since."""
    known = [step for step in moment.steps if title_of(step) == title]
    return [step.what for step in known[-2:]] == ["delete_owner", "create_owner"] and (
        known[-2].about["propagation"] == "Orphan"
    )


def _status(taken: Snapshot, title: str) -> Obj:
    found: Obj = taken["owners"].get(title, {}).get("status", {})
    return found


def status_of_a_failed_sync(difference: Difference, moment: Moment) -> bool:
    """Quota refuses a daemon pod: the fleet's status tells of the node that has none, upstream 1.20 leaves the status
    as it was before."""
    section, title, *rest = difference.path
    if not title.startswith("DaemonSet/") or (section, *rest[:1]) != ("owners", "status"):
        return False
    quota = [step.what for step in moment.steps if step.what in ("set_quota", "drop_quota")]
    ours, theirs, before = (_status(taken, title) for taken in (moment.fleet, moment.upstream, moment.upstream_before))
    short = ours.get("desiredNumberScheduled", 0) > len(pods(moment.fleet, title))
    return quota[-1:] == ["set_quota"] and short and theirs == before


def status_after_a_taint(difference: Difference, moment: Moment) -> bool:
    """A taint that lets a pod stay has come or gone: the fleet counts its node anew, upstream's whole status is as it
    was before, until something else wakes the set."""
    section, title, *rest = difference.path
    if not title.startswith("DaemonSet/") or (section, *rest[:1]) != ("owners", "status"):
        return False
    ours, theirs, before = (_status(taken, title) for taken in (moment.fleet, moment.upstream, moment.upstream_before))
    more = ours.get(_MISSCHEDULED, 0) - theirs.get(_MISSCHEDULED, 0)
    taints = sum(step.what == "taint_node" for step in moment.since_creation(title))
    if theirs != before or not 0 < abs(more) <= taints:
        return False
    if rest[1] == _MISSCHEDULED:
        return True
    if rest[1] in ("desiredNumberScheduled", "currentNumberScheduled"):
        return surplus(difference) == -more
    fewer = -surplus(difference) if more > 0 else surplus(difference)
    return rest[1] in (*_COUNTS_UP, "numberUnavailable") and 0 < fewer <= abs(more)


def _deleted_again(moment: Moment, title: str) -> int:
    again: int = moment.upstream["events"][title]["again"].get(DELETED, 0)
    return again


def deleted_twice(difference: Difference, moment: Moment) -> bool:
    """Upstream sent the delete of a pod again, while its cache did not show it as deleted yet; that succeeds and is
    told as an event. Names of upstream's pods are never used again, so a repeated message is a repeated delete."""
    section, title, *rest = difference.path
    if section != "events" or rest != [DELETED] or not title.startswith("DaemonSet/"):
        return False
    return 0 < -surplus(difference) <= _deleted_again(moment, title)


def _evicting_taints(moment: Moment, title: str) -> int:
    """How many there have been in the set's life."""
    steps = moment.since_creation(title)
    return sum(step.what == "taint_node" and step.about["effect"] == "NoExecute" for step in steps)


def evicted(difference: Difference, moment: Moment) -> bool:
    """A NoExecute taint makes two delete the daemon pod, its controller and whoever evicts; who comes first is chance.
    One event more or less for each such taint."""
    section, title, *rest = difference.path
    if section != "events" or rest != [DELETED] or not title.startswith("DaemonSet/"):
        return False
    taints = _evicting_taints(moment, title)
    return bool(taints) and -taints <= -surplus(difference) <= taints + _deleted_again(moment, title)


MEANT = (
    Explanation("ended-and-held", ended_and_held, until=rules.ENDED_REPLACED),
    Explanation("succeeded-daemon-pod", succeeded, until=rules.SUCCEEDED_REPLACED),
    Explanation("template-generation", template_generation, until=rules.GENERATION_COUNTS),
    Explanation("status-of-a-failed-sync", status_of_a_failed_sync, until=rules.STATUS_OF_FAILED_SYNC),
    Explanation("status-after-a-taint", status_after_a_taint, since=rules.TAINTS_WAKE_NOBODY),
    Explanation("deleted-twice", deleted_twice),
    Explanation("evicted", evicted),
)
