"""What upstream does since which version, as far as scenarios show it: the first release in which all patches do.

`explain` asks by version which differences are meant, `generate` what can be played, `quiet` what there is to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.realserver.versions import MAX_SURGE_SINCE, Version

Minor = tuple[int, int]
FIRST: Minor = (0, 0)
NEVER: Minor = (99, 0)

CLEANED_BY_REVISION: Minor = (1, 21)
"""A Deployment's surplus ReplicaSets go by revision, no longer by age (kubernetes#97407)."""
DELETION_COST: Minor = (1, 22)
"""The cost of a pod's deletion counts (PodDeletionCost, beta and on)."""
AGES_BY_MAGNITUDE: Minor = (1, 22)
"""Ages of one order of magnitude count as equal, and then the UID decides (LogarithmicScaleDown, beta and on)."""
SUCCEEDED_REPLACED: Minor = (1, 27)
"""A daemon pod that has succeeded is deleted and replaced (kubernetes#117073)."""
STATUS_OF_FAILED_SYNC: Minor = (1, 27)
"""A DaemonSet's status is written also where its pods are refused (kubernetes#113787)."""
ENDED_REPLACED: Minor = (1, 28)
"""A daemon pod that has ended and hangs on a finalizer has a successor (kubernetes#118716)."""
GENERATION_COUNTS: Minor = (1, 36)
"""A daemon pod of the set's template generation counts as updated. Seen in 1.36; it came somewhat earlier."""
TAINTS_WAKE_NOBODY: Minor = (1, 33)
"""A DaemonSet is not woken by a taint that comes and lets its pod stay (kubernetes#130514); in the first patches of
1.33 and 1.34 neither by one that goes (kubernetes#132477)."""


@dataclass(frozen=True)
class Rules:
    """Of a side: `manager` is the version of whose controllers it has, `server` that of its API server."""

    manager: Version
    server: Version

    @property
    def surge(self) -> bool:
        """Whether DaemonSets surge. The controller has it since the same version as the server."""
        return min(self.manager, self.server) >= MAX_SURGE_SINCE

    @property
    def taints_wake(self) -> bool:
        """Whether a DaemonSet's status follows a taint that lets its pod stay."""
        return self.manager < TAINTS_WAKE_NOBODY
