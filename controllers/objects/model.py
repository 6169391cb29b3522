"""What the controllers know of cluster objects: frozen projections with only the fields that are read.

Every time is in unix milliseconds, 0 when absent. A projection has no resourceVersion: if an event changes nothing
that a controller reads, the projections before and after it must be equal. New fields go at the end, with a default,
so that the blobs of an older process can still be read. Of what a process keeps by the ten thousand Python's search for
cycles of garbage knows nothing (gc=False): it has none, and is smaller and sooner made so.
"""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from oarlock.controllers.objects.selector import InvalidSelector, LabelSelector, Requirement, label_selector

__all__ = [
    "FINISHED_PHASES",
    "HASH_LABEL",
    "Condition",
    "InvalidSelector",
    "LabelSelector",
    "Owned",
    "OwnerRef",
    "Pod",
    "ReplicaSet",
    "ReplicaSetStatus",
    "Requirement",
    "controller_of",
    "label_selector",
]

HASH_LABEL = "pod-template-hash"  # of a Deployment's ReplicaSet, its selector and its pods: which template they have
FINISHED_PHASES = ("Succeeded", "Failed")


class OwnerRef(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One entry of metadata.ownerReferences. At most one of an object's entries has `controller` set."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class Named(msgspec.Struct, frozen=True, array_like=True):
    """What every projection of an object in a namespace begins with. Whoever checks signed blobs reads these fields,
    whatever the kind.
    """

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def waits_for_pods(self) -> bool:
        """Whether the end of a pod that it selects wakes it, though another object controls that pod."""
        return False

    @property
    def is_observed(self) -> bool:
        """Whether its status tells of its generation: then its controller has observed what it asks for."""
        return False


class Namespaced(Named, frozen=True):
    """What the projections of most kinds begin with."""

    uid: str


class Pod(Named, frozen=True, gc=False):
    """A pod. `node_name` is empty while unassigned; `ready_since_ms` is set only while `ready`.

    The last six fields end the blob: those that many pods have in common, and the uid. The cache keeps that end once
    for them, the uid aside (see pods/classes.py). New fields go before them, and change the protocol (broker/keys.py).

    `restarts` is the largest count among regular containers, `sidecar_restarts` among restartable init
    containers. `pinned_node`, kept only while unassigned: the one node that the required node affinity names
    by its metadata.name field. `hangs`: it is being deleted and finalizers hold it, so it may stay for ever, even after
    it has finished.
    """

    node_name: str = ""
    created_ms: int = 0
    deleting_ms: int = 0
    ready_since_ms: int = 0
    restarts: int = 0
    sidecar_restarts: int = 0
    deletion_cost: int = 0
    pinned_node: str = ""
    phase: str = ""
    ready: bool = False
    hangs: bool = False
    labels: dict[str, str] = {}
    owner_refs: tuple[OwnerRef, ...] = ()
    uid: str = ""

    @property
    def target_node(self) -> str:
        """The node it is on or, while unassigned, the one its affinity pins it to; empty where there is neither."""
        return self.node_name or self.pinned_node


class Condition(msgspec.Struct, frozen=True, array_like=True):
    """One entry of status.conditions; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_ms: int = 0


class ReplicaSetStatus(msgspec.Struct, frozen=True, array_like=True):
    """Status of a ReplicaSet or ReplicationController. `terminating` None is absent, which differs from 0."""

    replicas: int = 0
    fully_labeled: int = 0
    ready: int = 0
    available: int = 0
    terminating: int | None = None
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(Namespaced, frozen=True):
    """A ReplicaSet, or a ReplicationController brought into the same form.

    `selector`: None if the object has none; it matches nothing. `template`: the JSON of spec.template, decoded only
    when pods are created. `template_labels`: the labels in it. `strict`: every existing pod keeps its slot, also one
    that is ending. Empty for a ReplicationController: `labels`; `annotations`, all but the configuration applied last;
    `template_digest`, which stands for the content of the template without its hash label (see history/digest.py).
    """

    generation: int
    replicas: int
    selector: LabelSelector | None
    template: bytes
    template_labels: dict[str, str]
    min_ready_seconds: int = 0
    deleting_ms: int = 0
    owner_refs: tuple[OwnerRef, ...] = ()
    status: ReplicaSetStatus = ReplicaSetStatus()
    strict: bool = False
    created_ms: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    template_digest: str = ""

    @property
    def is_observed(self) -> bool:
        """See Named."""
        return 0 < self.generation <= self.status.observed_generation


class Owned(Protocol):
    """Anything with owner references."""

    @property
    def owner_refs(self) -> tuple[OwnerRef, ...]: ...


def controller_of(obj: Owned) -> OwnerRef | None:
    """The one owner reference marked as controller, or None for an orphan."""
    for ref in obj.owner_refs:
        if ref.controller:
            return ref
    return None


def is_finished(pod: Pod) -> bool:
    """Phase Succeeded or Failed: it will not run again.

    Upstream, for this and what follows: `pkg/controller/controller_utils.go` (IsPodActive, FilterActivePods).
    """
    return pod.phase in FINISHED_PHASES


def is_active(pod: Pod) -> bool:
    """Neither finished nor being deleted; a pod without a phase yet is active."""
    return not pod.deleting_ms and pod.phase not in FINISHED_PHASES


def active_pods(pods: Iterable[Pod]) -> list[Pod]:
    """The active ones, in the order given."""
    return [pod for pod in pods if not pod.deleting_ms and pod.phase not in FINISHED_PHASES]
