"""What becomes of pods between the steps of a plan: those that it created get ready, those that are deleted go."""

from __future__ import annotations

from typing import Any

import orjson

from oarlock.cli.plan.cluster_copy import PLANNED, ClusterCopy
from oarlock.controllers.objects.wire_parts import rfc3339
from oarlock.controllers.registry import WATCHED

Obj = dict[str, Any]


def let_pods_go_on(copy: ClusterCopy, now_ms: int) -> tuple[int, int]:
    """How many got ready, and how many have gone. A pod with finalizers stays."""
    ready = gone = 0
    for pod in copy.of("pods"):
        meta = pod["metadata"]
        if meta.get("deletionTimestamp"):
            if not meta.get("finalizers"):
                copy.remove("pods", pod)
                gone += 1
        elif meta["uid"].startswith(PLANNED) and not pod["spec"].get("nodeName"):
            copy.keep("pods", _ready(pod, now_ms))
            ready += 1
    return ready, gone


def _ready(pod: Obj, now_ms: int) -> Obj:
    """On its node. One that is left to the scheduler gets a node of its own: nobody knows which it would choose."""
    since = rfc3339(now_ms)
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    return {
        **pod,
        "spec": {**pod["spec"], "nodeName": pinned_node(pod) or f"a-node-for-{pod['metadata']['name']}"},
        "status": {"phase": "Running", "startTime": since, "conditions": [condition]},
    }


def pinned_node(pod: Obj) -> str:
    """The node that its affinity names; empty for none. ``pod``: also the body of a create."""
    complete = {**pod, "metadata": {"uid": "-", "resourceVersion": "-", **pod["metadata"]}}
    found: str = WATCHED["pods"].from_json(orjson.dumps(complete))[1].pinned_node
    return found
