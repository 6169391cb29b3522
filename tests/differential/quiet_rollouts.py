"""Whether a Deployment has come to rest: done, paused, or as far as its limits and its pods let it go. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tests.differential.hands_rollouts import DESIRED, ROLL_BACK
from tests.differential.naming import template_of
from tests.differential.reading import (
    ENDED,
    annotated,
    controller,
    is_owned,
    phase,
    revision_number,
    selector,
    selects,
    status,
)

Obj = dict[str, Any]
LONG_S = 60
"""A longer progressDeadlineSeconds does not pass within a scenario."""
_MINE = ("DeploymentPaused", "ProgressDeadlineExceeded")


def reasons(deployment: Obj, replicasets: Sequence[Obj], pods: Sequence[Obj], *, is_claimant: bool) -> Iterator[str]:
    """What there is still to wait for. `replicasets`: of the namespace, the oldest first; `is_claimant`: no other
    Deployment has its selector."""
    spec, pairs = deployment["spec"], selector(deployment)
    owned = [each for each in replicasets if is_owned(each, deployment)]
    for each in replicasets:
        if is_owned(each, deployment) and not selects(pairs, each):
            yield f"{each['metadata']['name']} is to be released"
        if is_claimant and controller(each) is None and selects(pairs, each):
            yield f"{each['metadata']['name']} is to be adopted"
    new = next((each for each in owned if template_of(each) == template_of(deployment)), None)
    old = [each for each in owned if each is not new]
    yield from _of_status(deployment, owned, new)
    yield from _of_sizes(spec, owned, new)
    if spec.get("paused"):
        if _progressing(deployment) not in ("", *_MINE):
            yield "it does not say that it is paused"
        return
    if ROLL_BACK in annotated(deployment):
        yield "it is to be rolled back"
    going = any(_size(each) for each in old)
    if spec["strategy"]["type"] == "Recreate":
        if not going and not any(_runs(pod) for each in old for pod in pods if is_owned(pod, each)):
            yield from _of_new(spec["replicas"], new)
        elif going:
            yield "old pods are to go"
    else:
        yield from _of_rolling(spec, new, old)
    yield from _of_progress(deployment, old)


def _of_status(deployment: Obj, owned: Sequence[Obj], new: Obj | None) -> Iterator[str]:
    said = status(deployment)
    sums = {
        name: sum(_said(each, name) for each in owned) for name in ("replicas", "readyReplicas", "availableReplicas")
    }
    sums["updatedReplicas"] = _said(new, "replicas") if new else 0
    sums["unavailableReplicas"] = max(0, sum(map(_size, owned)) - sums["availableReplicas"])
    for name, count in sums.items():
        if said.get(name, 0) != count:
            yield f"its status does not say {count} {name}"
    failing = any(each["type"] == "ReplicaFailure" for one in owned for each in status(one).get("conditions") or ())
    if failing != any(each["type"] == "ReplicaFailure" for each in said.get("conditions") or ()):
        yield f"its status does not say {'of a failure' if failing else 'that a failure is over'}"


def _of_sizes(spec: Obj, owned: Sequence[Obj], new: Obj | None) -> Iterator[str]:
    """Sizes that a change of `replicas` asks for, or somebody's hand."""
    active = [each for each in owned if _size(each)]
    for each in active:
        if annotated(each).get(DESIRED, str(spec["replicas"])) != str(spec["replicas"]):
            yield f"{each['metadata']['name']} is to be scaled"
    if spec.get("paused") and [_size(each) for each in active or [new] if each] not in ([spec["replicas"]], []):
        if len(active) < 2:
            yield "its only ReplicaSet is to be scaled"
        elif new and _size(new) == spec["replicas"] == _said(new, "availableReplicas"):
            yield "the old ones are to be scaled down"


def _of_new(replicas: int, new: Obj | None) -> Iterator[str]:
    if new is None:
        yield "it has no new ReplicaSet"
    elif _size(new) != replicas:
        yield f"its new ReplicaSet has size {_size(new)}"


def _of_rolling(spec: Obj, new: Obj | None, old: Sequence[Obj]) -> Iterator[str]:
    replicas, total = spec["replicas"], sum(map(_size, old)) + (_size(new) if new else 0)
    surge, unavailable = _limits(spec)
    if new is None or _size(new) > replicas or total < replicas + surge:
        yield from _of_new(replicas, new)
    if new is None or not any(map(_size, old)):
        return
    least = replicas - min(unavailable, replicas)
    available = sum(_said(each, "availableReplicas") for each in (new, *old))
    if total - least - (_size(new) - _said(new, "availableReplicas")) > 0 and (
        available > least or any(_size(each) != _said(each, "availableReplicas") for each in old)
    ):
        yield "old pods are to go"


def _of_progress(deployment: Obj, old: Sequence[Obj]) -> Iterator[str]:
    spec, said = deployment["spec"], status(deployment)
    counts = [said.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    is_complete, told = counts == [spec["replicas"]] * 3, _progressing(deployment)
    deadline_s = spec["progressDeadlineSeconds"]
    if deadline_s == 2**31 - 1:
        if told:
            yield "it still speaks of progress"
    elif is_complete and told != "NewReplicaSetAvailable":
        yield "it does not say that it is done"
    elif not is_complete and deadline_s < LONG_S and told not in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        yield "its deadline is to pass"
    surplus = len(old) - spec["revisionHistoryLimit"]
    if is_complete and surplus > 0:
        for each in sorted(old, key=revision_number)[:surplus]:
            if not _size(each) and not _said(each, "replicas"):
                yield f"{each['metadata']['name']} is to be cleaned up"


def _limits(spec: Obj) -> tuple[int, int]:
    rolling = spec["strategy"]["rollingUpdate"]
    surge = _share(rolling["maxSurge"], spec["replicas"], math.ceil)
    unavailable = _share(rolling["maxUnavailable"], spec["replicas"], math.floor)
    return surge, unavailable if surge or unavailable else 1


def _share(said: int | str, replicas: int, rounded: Any) -> int:
    return said if isinstance(said, int) else int(rounded(int(said.rstrip("%")) * replicas / 100))


def _size(replicaset: Obj) -> int:
    return int(replicaset["spec"]["replicas"])


def _said(replicaset: Obj, name: str) -> int:
    return int(status(replicaset).get(name, 0))


def _runs(pod: Obj) -> bool:
    """Whether a pod keeps those of another template away; one on its way out does."""
    return phase(pod) not in ENDED


def _progressing(deployment: Obj) -> str:
    """The reason of that condition."""
    found = (each for each in status(deployment).get("conditions") or () if each["type"] == "Progressing")
    return next((str(each["reason"]) for each in found), "")
