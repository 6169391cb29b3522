"""The cluster as a watch showed it, for counting: one value for each revision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

ROLLING_UPDATE = "RollingUpdate"
_MS_PER_S = 1000


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod at a revision. ``active``: it counts for its owner (not terminating, not finished).

    ``node``: the one it is on or is made for. ``present``: it is there, finished or not, and not terminating.
    """

    rv: int
    uid: str
    owner_uid: str
    active: bool
    node: str = ""
    present: bool = False
    ready: bool = False
    ready_since_ms: int = 0
    at_ms: int = 0

    def available(self, min_ready_s: int, at_ms: int) -> bool:
        """Whether it was ready for so long at a time (unix ms)."""
        since_ms = self.ready_since_ms + min_ready_s * _MS_PER_S
        return self.active and self.ready and (not min_ready_s or since_ms <= at_ms)


@dataclass(frozen=True, slots=True)
class _Owner:
    """An owner of pods at a revision. ``wanted``: pods that it asks for, 0 once it is gone.

    ``created``, ``ready``, ``updated`` (pods of the present template), ``available`` and ``misplaced`` (pods
    on nodes that are to have none) are the counts of its status.
    """

    rv: int
    uid: str
    key: str
    wanted: int
    generation: int = 0
    observed: int = 0
    created: int = 0
    ready: int = 0
    updated: int = 0
    available: int = 0
    misplaced: int = 0
    kind: str = ""

    @property
    def title(self) -> str:
        """``ReplicaSet shop/cart``."""
        return f"{self.kind} {self.key}"

    @property
    def settled(self) -> bool:
        """Its status says that all that is asked for is there, of the present template, available, and nothing else."""
        full = self.created == self.ready == self.updated == self.available == self.wanted
        return full and not self.misplaced and self.observed >= self.generation


@dataclass(frozen=True, slots=True)
class SetSeen(_Owner):
    """A ReplicaSet or ReplicationController at a revision. It looks at no template: all its pods count as updated.

    ``owner_uid``: of the Deployment that controls it, or "".
    """

    kind: str = "ReplicaSet"
    owner_uid: str = ""


@dataclass(frozen=True, slots=True)
class DeploymentSeen(_Owner):
    """A Deployment at a revision. ``surge``, ``unavailable``: pods that there may be beyond those that it asks for, and
    that may be missing, while they are replaced. ``stuck``: its progress deadline has passed.
    """

    kind: str = "Deployment"
    surge: int = 0
    unavailable: int = 0
    min_ready_s: int = 0
    stuck: bool = False


@dataclass(frozen=True, slots=True)
class DaemonsSeen(_Owner):
    """A DaemonSet at a revision. ``wanted``: nodes that are to have a pod, by its status.

    ``limit``, ``surge``: maxUnavailable and maxSurge as written.
    """

    kind: str = "DaemonSet"
    strategy: str = ROLLING_UPDATE
    limit: int | str | None = None
    surge: int | str | None = None
    min_ready_s: int = 0

    @property
    def surges(self) -> bool:
        """Whether a node may carry two pods while they are replaced."""
        return self.strategy == ROLLING_UPDATE and self.surge_nodes > 0

    @property
    def surge_nodes(self) -> int:
        """On how many nodes at a time."""
        return _share(self.surge, self.wanted)

    @property
    def down_allowed(self) -> int:
        """How many nodes a rolling update may have without an available pod.

        Upstream: pkg/controller/daemon/util/daemonset_util.go (UnavailableCount: percentages are rounded up).
        """
        limit = _share(self.limit, self.wanted)
        return 1 if not limit and not self.surge_nodes and self.wanted else limit


OwnerSeen: TypeAlias = SetSeen | DeploymentSeen | DaemonsSeen
Seen: TypeAlias = PodSeen | OwnerSeen


def _share(value: int | str | None, whole: int) -> int:
    """A number, or a percentage of the whole, rounded up."""
    if isinstance(value, str):
        return -(-int(value.removesuffix("%")) * whole // 100)
    return value or 0
