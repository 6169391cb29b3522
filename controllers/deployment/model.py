"""What the controllers know of a Deployment. Times are unix milliseconds, 0 when absent."""

import msgspec

from oarlock.controllers.objects.model import LabelSelector, Namespaced, OwnerRef

ROLLING_UPDATE, RECREATE = "RollingUpdate", "Recreate"


class DeploymentCondition(msgspec.Struct, frozen=True, array_like=True):
    """One entry of status.conditions; `status` is True, False or Unknown. Its last update is apart from its last
    transition, unlike in conditions of other kinds.
    """

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_update_ms: int = 0
    last_transition_ms: int = 0


class DeploymentStatus(msgspec.Struct, frozen=True, array_like=True):
    """The status. None is absent, which differs from 0."""

    replicas: int = 0
    updated: int = 0
    ready: int = 0
    available: int = 0
    unavailable: int = 0
    terminating: int | None = None
    observed_generation: int = 0
    collision_count: int | None = None
    conditions: tuple[DeploymentCondition, ...] = ()


class Deployment(Namespaced, frozen=True):
    """A Deployment. `template` is the JSON of spec.template; `template_digest` stands for its content without the hash
    label (see history/digest.py); `template_labels` are without it, too.

    `max_surge` and `max_unavailable` are as given: a number, a percentage such as "10%", or None.
    `revision_history_limit` and `progress_deadline_seconds`: None without a limit (absent, or the largest int32).
    `annotations`: all but the last applied configuration.
    """

    generation: int
    replicas: int
    selector: LabelSelector | None
    template: bytes
    template_digest: str
    template_labels: dict[str, str]
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    strategy: str = ROLLING_UPDATE
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    paused: bool = False
    deleting_ms: int = 0
    owner_refs: tuple[OwnerRef, ...] = ()
    status: DeploymentStatus = DeploymentStatus()
    created_ms: int = 0

    @property
    def waits_for_pods(self) -> bool:
        """With Recreate no new pod comes before the last old one has gone, and no ReplicaSet shows that moment."""
        return self.strategy == RECREATE

    @property
    def is_observed(self) -> bool:
        """See Named."""
        return 0 < self.generation <= self.status.observed_generation
