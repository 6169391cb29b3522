"""How many pods a Deployment may have beyond its size, and how many of them may be unavailable.

Each limit is a number or a percentage of the size. A percentage is rounded up for maxSurge and down for maxUnavailable,
unlike in a DaemonSet. Upstream: `pkg/controller/deployment/util/deployment_util.go` (ResolveFenceposts, MaxSurge,
MaxUnavailable, MinAvailable).
"""

import re

import msgspec

from oarlock.controllers.deployment.model import ROLLING_UPDATE, Deployment

_PERCENTAGE = re.compile(r"([+-]?[0-9]+)%", re.ASCII)


class Limits(msgspec.Struct, frozen=True):
    """Numbers of pods: `surge` beyond the size, `unavailable` below it. Never both 0."""

    surge: int
    unavailable: int


def resolve(deployment: Deployment) -> Limits:
    """The limits of a rolling update, whatever the strategy; an absent one is 0.

    With both at 0 nothing could be replaced, so one pod may be unavailable. Raises ValueError with the name of the
    field that is neither a number nor a percentage.
    """
    surge = _scaled("maxSurge", deployment.max_surge, deployment.replicas, up=True)
    unavailable = _scaled("maxUnavailable", deployment.max_unavailable, deployment.replicas, up=False)
    return Limits(surge, unavailable) if surge or unavailable else Limits(0, 1)


def max_surge(deployment: Deployment) -> int:
    """How many pods there may be beyond the size: 0 unless the strategy is RollingUpdate. Raises ValueError."""
    return resolve(deployment).surge if deployment.strategy == ROLLING_UPDATE else 0


def max_pods(deployment: Deployment) -> int:
    """How many pods there may be. Raises ValueError."""
    return deployment.replicas + max_surge(deployment)


def max_unavailable(deployment: Deployment) -> int:
    """How many of its pods need not be available: never more than it has, and 0 unless the strategy is RollingUpdate.
    Raises ValueError.
    """
    if deployment.strategy != ROLLING_UPDATE:
        return 0
    return min(resolve(deployment).unavailable, deployment.replicas)


def min_available(deployment: Deployment) -> int:
    """How many available pods an update has to leave: 0 unless the strategy is RollingUpdate. Raises ValueError."""
    if deployment.strategy != ROLLING_UPDATE:
        return 0
    return deployment.replicas - max_unavailable(deployment)


def _scaled(field: str, value: int | str | None, total: int, *, up: bool) -> int:
    """`value` itself, or so many percent of `total`."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    found = _PERCENTAGE.fullmatch(value)
    if found is None:
        raise ValueError(f"{field} is neither a number nor a percentage: {value!r}")
    share = int(found[1]) * total
    return -(-share // 100) if up else share // 100
