"""Differences that are meant, of ReplicaSets and ReplicationControllers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from differential.compare import Difference
from differential.manifests import COST
from differential.moment import Explanation, Moment, pods
from differential.snapshot import MARK

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
    section, title, *_ = difference.path
    steps = moment.steps_of(title)
    if section != "pods" or [step.what for step in steps[-3:]] != ["annotate_pods", "rank_pods", "change_spec"]:
        return False
    marks = [pod[MARK] for pod in steps[-3].about["annotations"]]
    ages_s = steps[-2].about["ages_s"]
    orders = {((age_s + late_s) * 10**9).bit_length() for age_s in ages_s for late_s in (0, LATE_S)}
    if any(COST in pod for pod in steps[-3].about["annotations"]) or len(orders) > 1:
        return False
    count = steps[-1].about["spec"]["replicas"]
    uids = moment.fleet_before["marks"].get(title, {})
    by_age = sorted(zip(ages_s, marks, strict=True), reverse=True)
    by_uid = sorted(marks, key=lambda mark: uids.get(mark, ""), reverse=True)
    return _are_left(title, moment, {"upstream": [mark for _, mark in by_age[:count]], "fleet": by_uid[:count]})


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


MEANT = (Explanation("deletion-cost", deletion_cost), Explanation("logarithmic-age", logarithmic_age))
