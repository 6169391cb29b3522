"""The cluster as a watch showed it: one event a resourceVersion, as plain values.

Times are unix seconds of this machine's clock (``_s``). A task is "queue:namespace/name", as in the fleet's lease
table; of a node it is "queue:name".
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

QUEUE_OF_KIND = {
    "ReplicaSet": "replicaset",
    "ReplicationController": "replicationmanager",
    "DaemonSet": "daemonset",
    "Deployment": "deployment",
}
"""The kinds of owners that are judged, and the queue of each."""
DAEMONS, DEPLOYMENTS = QUEUE_OF_KIND["DaemonSet"], QUEUE_OF_KIND["Deployment"]
NODE_QUEUE = "daemonset-node-updates"
"""Its keys are names of nodes."""


class PodSeen(NamedTuple):
    """A pod after a change. ``owner``: uid of its controller, "" for an orphan; ``gone``: it has left the store.

    ``pinned``: the node its required affinity names. ``ready_since_s``: when it last became ready, by its own word,
    to the second. ``revision``: its label controller-revision-hash. ``version``: what the load wrote into the template
    that it was made from.
    """

    rv: int
    at_s: float
    gone: bool
    namespace: str
    name: str
    uid: str
    owner: str = ""
    task: str = ""
    labels: str = ""
    node: str = ""
    deleting: bool = False
    phase: str = "Pending"
    ready: bool = False
    pinned: str = ""
    ready_since_s: float = 0.0
    revision: str = ""
    version: str = ""

    @property
    def active(self) -> bool:
        """Counts towards the replicas of its controller."""
        return not self.gone and not self.deleting and self.phase not in ("Succeeded", "Failed")

    @property
    def target(self) -> str:
        """The node it is on or is meant for; "" where it names none."""
        return self.node or self.pinned

    def available(self, at_s: float, min_ready_s: int) -> bool:
        """Whether it was ready for long enough at that time."""
        return self.active and self.ready and (not min_ready_s or self.ready_since_s + min_ready_s <= at_s)


class OwnerSeen(NamedTuple):
    """A ReplicaSet or ReplicationController after a change: what it asks for, and what its status says.

    ``owner``, ``owner_task``: of its controller, "" where it has none. ``digest``: of its template without the label
    that tells a Deployment's templates apart.
    """

    rv: int
    at_s: float
    gone: bool
    task: str
    uid: str
    generation: int
    replicas: int
    deleting: bool = False
    strict: bool = False
    observed: int = 0
    status_replicas: int = 0
    status_ready: int = 0
    owner: str = ""
    owner_task: str = ""
    digest: str = ""
    status_available: int = 0


class DeploymentSeen(NamedTuple):
    """A Deployment after a change: how it is to be rolled out, and what its status says.

    ``surge``, ``unavailable``: maxSurge and maxUnavailable as written, "" where absent. ``history``: how many old
    ReplicaSets may be left. ``digest``, ``version``: as of a DaemonSet. ``said``: replicas, updatedReplicas,
    readyReplicas, availableReplicas, unavailableReplicas.
    """

    rv: int
    at_s: float
    gone: bool
    task: str
    uid: str
    generation: int
    replicas: int
    deleting: bool = False
    strategy: str = "RollingUpdate"
    surge: str = ""
    unavailable: str = ""
    paused: bool = False
    min_ready_s: int = 0
    history: int = 10
    digest: str = ""
    version: str = ""
    observed: int = 0
    said: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)


class Tolerance(NamedTuple):
    """One entry of a template's tolerations."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class DaemonSetSeen(NamedTuple):
    """A DaemonSet after a change: where it asks to run, how it is to be rolled, and what its status says.

    ``limit``, ``surge``: maxUnavailable and maxSurge as written, "" where absent. ``node_selector``: (label, value)
    pairs. ``digest``: of its template; ``version``: what the load wrote into it.
    """

    rv: int
    at_s: float
    gone: bool
    task: str
    uid: str
    generation: int
    deleting: bool = False
    strategy: str = "RollingUpdate"
    limit: str = ""
    surge: str = ""
    min_ready_s: int = 0
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Tolerance, ...] = ()
    digest: str = ""
    version: str = ""
    observed: int = 0
    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    updated: int = 0
    available: int = 0
    unavailable: int = 0

    @property
    def surges(self) -> bool:
        """Whether an old and a new pod may share a node."""
        return self.strategy == "RollingUpdate" and self.surge not in ("", "0", "0%")


class RevisionSeen(NamedTuple):
    """A ControllerRevision after a change. ``digest``: of the template that it holds."""

    rv: int
    at_s: float
    gone: bool
    namespace: str
    name: str
    uid: str
    owner: str = ""
    task: str = ""
    label: str = ""
    number: int = 0
    digest: str = ""


class TaintSeen(NamedTuple):
    """One of a node's taints."""

    key: str
    effect: str
    value: str = ""


class NodeSeen(NamedTuple):
    """A node after a change."""

    rv: int
    at_s: float
    gone: bool
    name: str
    uid: str
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[TaintSeen, ...] = ()


class NamespaceSeen(NamedTuple):
    """A namespace after a change."""

    rv: int
    at_s: float
    gone: bool
    name: str
    deleting: bool = False


S = TypeVar("S", PodSeen, OwnerSeen, RevisionSeen, NodeSeen, NamespaceSeen)


def note(known: dict[str, S], key: str, seen: S) -> S | None:
    """Keep the newest sighting of everything that is there. Returns the one before."""
    before = known.get(key)
    if not seen.gone:
        known[key] = seen
    elif before is not None:
        del known[key]
    return before


Seen = PodSeen | OwnerSeen | DaemonSetSeen | DeploymentSeen | RevisionSeen | NodeSeen | NamespaceSeen
