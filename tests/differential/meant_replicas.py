"""Differences that are meant, of ReplicaSets and ReplicationControllers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.differential import rules
from tests.differential.compare import Difference
from tests.differential.manifests import COST
from tests.differential.moment import Explanation, Moment, Obj, pods
from tests.differential.snapshot import MARK, Snapshot

LATE_S = 120
"""Within which a pod's age is looked at after it was set."""


def deletion_cost(difference: Difference, moment: Moment) -> bool:
    """Scaled down with costs on equally old pods: upstream kept those with the fewest restarts, the fleet those with
    the highest cost, and each exactly these."""
    section, title, *_ = difference.path
    steps = moment.steps_of(title)
    if section != "pods" or [step.what for step in steps[-3:]] != ["annotate_pods", "rank_pods", "change_spec"]:
        return False
    marked, restarts = steps[-3].about["annotations"], steps[-2].about["restarts"]
    if any(COST not in pod for pod in marked):
        return False
    by_cost = sorted(marked, key=lambda pod: -int(pod[COST]))
    by_restarts = [pod for _, pod in sorted(zip(restarts, marked, strict=True), key=lambda pair: pair[0])]
    count = steps[-1].about["spec"]["replicas"]
    kept = {"upstream": by_restarts[:count], "fleet": by_cost[:count]}
    return _are_left(title, moment, {side: [pod[MARK] for pod in some] for side, some in kept.items()})


def logarithmic_age(difference: Difference, moment: Moment) -> bool:
    """Scaled down with ages of one order of magnitude: upstream kept the oldest, the fleet those whose UIDs come last,
    and each exactly these."""
    if (scaled := _near_ages(difference, moment)) is None:
        return False
    ages_s, marks, count = scaled
    by_age = [mark for _, mark in sorted(zip(ages_s, marks, strict=True), reverse=True)]
    title = difference.path[1]
    by_uid = _by_uid(marks, moment.fleet_before, title)
    return _are_left(title, moment, {"upstream": by_age[:count], "fleet": by_uid[:count]})


def uid_decides(difference: Difference, moment: Moment) -> bool:
    """The same, and both kept those whose UIDs come last. These differ from side to side."""
    if (scaled := _near_ages(difference, moment)) is None:
        return False
    _, marks, count = scaled
    title = difference.path[1]
    before = {"upstream": moment.upstream_before, "fleet": moment.fleet_before}
    return _are_left(title, moment, {side: _by_uid(marks, taken, title)[:count] for side, taken in before.items()})


def _near_ages(difference: Difference, moment: Moment) -> tuple[list[int], list[str], int] | None:
    """Ages in s and marks of pods that were just scaled down to a number, the ages of one order of magnitude."""
    section, title, *_ = difference.path
    steps = moment.steps_of(title)
    if section != "pods" or [step.what for step in steps[-3:]] != ["annotate_pods", "rank_pods", "change_spec"]:
        return None
    marked: list[Obj] = steps[-3].about["annotations"]
    ages_s: list[int] = steps[-2].about["ages_s"]
    orders = {((age_s + late_s) * 10**9).bit_length() for age_s in ages_s for late_s in (0, LATE_S)}
    if any(COST in pod for pod in marked) or len(orders) > 1:
        return None
    return ages_s, [pod[MARK] for pod in marked], steps[-1].about["spec"]["replicas"]


def _by_uid(marks: list[str], before: Snapshot, title: str) -> list[str]:
    """The last first."""
    uids = before["marks"].get(title, {})
    return sorted(marks, key=lambda mark: uids.get(mark, ""), reverse=True)


def _are_left(title: str, moment: Moment, kept: Mapping[str, Sequence[str]]) -> bool:
    return all(
        sorted(
            pod["annotations"].get(MARK, "")
            for pod in pods(taken, title)
            if pod["phase"] == "Running" and not pod["deleting"]
        )
        == sorted(kept[side])
        for side, taken in moment.sides()
    )


MEANT = (
    Explanation("deletion-cost", deletion_cost, until=rules.DELETION_COST),
    Explanation("logarithmic-age", logarithmic_age, until=rules.AGES_BY_MAGNITUDE),
    Explanation("uid-decides", uid_decides, since=rules.AGES_BY_MAGNITUDE),
)
