"""What the controllers know of a DaemonSet. Times are unix milliseconds, 0 when absent."""

import msgspec

from oarlock.controllers.objects.model import LabelSelector, Namespaced, OwnerRef
from oarlock.controllers.scheduling.model import Placement

ROLLING_UPDATE, ON_DELETE = "RollingUpdate", "OnDelete"
REVISION_HISTORY_LIMIT_DEFAULT = 10


class DaemonSetStatus(msgspec.Struct, frozen=True, array_like=True):
    """The status fields the controller writes, and `collision_count` (None: absent, which differs from 0)."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    updated: int = 0
    available: int = 0
    unavailable: int = 0
    observed_generation: int = 0
    collision_count: int | None = None


class DaemonSet(Namespaced, frozen=True):
    """A DaemonSet. `template` is the JSON of spec.template, decoded only when pods are created;
    `template_digest` identifies its content (see history/digest.py); `template_generation` is the number in
    the annotation deprecated.daemonset.template.generation, None where it is absent or no number.

    `max_unavailable` and `max_surge` are as given: a number, a percentage such as "10%", or None.
    """

    generation: int
    selector: LabelSelector | None
    template: bytes
    template_digest: str
    placement: Placement
    strategy: str = ROLLING_UPDATE
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None
    min_ready_seconds: int = 0
    revision_history_limit: int = REVISION_HISTORY_LIMIT_DEFAULT
    template_generation: int | None = None
    deleting_ms: int = 0
    owner_refs: tuple[OwnerRef, ...] = ()
    status: DaemonSetStatus = DaemonSetStatus()
    created_ms: int = 0

    @property
    def is_observed(self) -> bool:
        """See Named."""
        return 0 < self.generation <= self.status.observed_generation
