"""Whether the API server would admit the pods: one of them is created as a dry run."""

from __future__ import annotations

from typing import Any

import orjson

from oarlock.cli.plan.live import LiveCluster
from oarlock.cluster.forbidden import missing_permission
from oarlock.cluster.resources import PODS
from oarlock.controllers.pods.slots import SUFFIX_CHARS

Obj = dict[str, Any]


def pod_admission(cluster: LiveCluster, namespace: str, body: bytes, not_asked: str) -> Obj:
    """``body``: of the first pod that the plan creates. ``not_asked``: why the server was not asked for the owner."""
    if not body:
        return {"asked": False, "why": "no pod is created"}
    if not_asked:
        return {"asked": False, "why": not_asked}
    pod: Obj = {"apiVersion": "v1", "kind": "Pod", **orjson.loads(body)}
    name = pod["metadata"].pop("name")  # it may be taken until the pod that has it is deleted
    pod["metadata"]["generateName"] = name[:-SUFFIX_CHARS]
    answer = cluster.dry_create(PODS, namespace, pod)
    if answer.ok:
        return {"asked": True, "admitted": True}
    lacks = missing_permission(answer, PODS.collection(namespace))
    if lacks is not None:
        return {"asked": False, "why": f"these credentials may not {lacks.verb} {lacks.resource}"}
    if answer.code < 400 or answer.code >= 500 or answer.code == 429:
        return {"asked": False, "why": f"the server did not answer: {answer.message}"}
    return {"asked": True, "admitted": False, "why": answer.message}
