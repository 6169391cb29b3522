"""How the simulated nodes behave, and how a pod can ask for another behaviour."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from oarlock.sandbox.nodes.kubelet.images import UNPULLABLE

Obj = dict[str, Any]

FAIL: Final = "oarlock.io/sim-fail"  # the pod fails; the value is the reason
NEVER_READY: Final = "oarlock.io/sim-never-ready"  # "true": the pod runs and is not ready
READY_AFTER: Final = "oarlock.io/sim-ready-after-ms"  # instead of the nodes' delay
REJECT: Final = "oarlock.io/sim-reject"  # on a node: its kubelet fails every pod that comes; the value is the reason
SIMULATED: Final = "oarlock.io/simulated"  # on a node: "true": simulated nodes of a server elsewhere serve it


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Delays in milliseconds, counted from the moment the kubelet sees the cause.

    `ready_jitter_ms` adds up to that much to the delay until ready, drawn with `seed`.
    `gone_node_ms` is how long a pod on a node that does not exist is left alone. `heartbeat_ms` is how often each
    node's status is repeated, 0 for never. `prefix` stands before the number of a node.

    `schedules`: pods without a node are given one. `lifecycle`: taints follow from the state of nodes, NoExecute taints
    evict, pods that nobody else takes away are given up (those of nodes that are gone, deleted ones without a node, the
    oldest of too many that are over). Switch off what somebody else does on this server.

    `unpullable` is looked for in the image of each container: where it is found the pod never starts. None: nowhere.
    """

    nodes: int = 5
    pods_per_node: int = 110
    ready_ms: float = 0.0
    ready_jitter_ms: float = 0.0
    terminate_ms: float = 0.0
    gone_node_ms: float = 1_000.0
    heartbeat_ms: float = 300_000.0
    seed: int = 0
    prefix: str = "node-"
    schedules: bool = True
    lifecycle: bool = True
    unpullable: re.Pattern[str] | None = re.compile(UNPULLABLE)


def annotation(obj: Obj, name: str) -> str | None:
    """The value of an annotation of a pod or a node, or None."""
    value: str | None = (obj["metadata"].get("annotations") or {}).get(name)
    return value


def is_never_ready(pod: Obj) -> bool:
    """Whether the pod asks not to become ready."""
    return annotation(pod, NEVER_READY) == "true"


def ready_after_ms(pod: Obj) -> float | None:
    """The delay the pod asks for; None if it asks for none, or for something that is no number."""
    text = annotation(pod, READY_AFTER)
    if text is None or not text.isascii() or not text.isdigit():
        return None
    return float(text)
