"""How many nodes may be without an available pod during a rolling update, and how many may have two pods.

Both limits are a number or a percentage of the nodes that should run a pod, and a percentage is rounded *up* for
either, unlike in a Deployment. Upstream: `pkg/controller/daemon/util/daemonset_util.go` (UnavailableCount, SurgeCount,
AllowsSurge), `pkg/controller/daemon/update.go` (updatedDesiredNodeCounts).
"""

import re

from oarlock.controllers.daemonset.model import ROLLING_UPDATE, DaemonSet

_PERCENTAGE = re.compile(r"([+-]?[0-9]+)%", re.ASCII)


def max_surge(owner: DaemonSet, desired: int) -> int:
    """How many of `desired` nodes may carry a new pod beside an old one that is available.

    0 where the field is absent or the strategy is not RollingUpdate. Raises ValueError where it is neither a number
    nor a percentage.
    """
    if owner.strategy != ROLLING_UPDATE or owner.max_surge is None:
        return 0
    return _scaled("maxSurge", owner.max_surge, desired)


def max_unavailable(owner: DaemonSet, desired: int) -> int:
    """How many of `desired` nodes may be without an available pod while pods are replaced.

    At least 1 if there is a node and no surge: with both limits at 0 nothing could be replaced. Raises ValueError if
    this limit is absent, or if one of the two is neither a number nor a percentage.
    """
    limit = 0
    if owner.strategy == ROLLING_UPDATE:
        if owner.max_unavailable is None:
            raise ValueError("maxUnavailable is absent")
        limit = _scaled("maxUnavailable", owner.max_unavailable, desired)
    return 1 if limit == 0 and desired > 0 and max_surge(owner, desired) == 0 else limit


def surges(owner: DaemonSet) -> bool:
    """Whether a node may have two pods: of one node, any percentage above 0 is 1. False if the limit is unreadable."""
    try:
        return max_surge(owner, 1) > 0
    except ValueError:
        return False


def pods_per_node(owner: DaemonSet) -> int:
    """How many pods of the owner may be on a node, in any state; upstream has no such limit."""
    return 2 if surges(owner) else 1


def _scaled(field: str, value: int | str, total: int) -> int:
    """`value` itself, or so many percent of `total`, rounded up."""
    if isinstance(value, int):
        return value
    found = _PERCENTAGE.fullmatch(value)
    if found is None:
        raise ValueError(f"{field} is neither a number nor a percentage: {value!r}")
    return -(-int(found[1]) * total // 100)
