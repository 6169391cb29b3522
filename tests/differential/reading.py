"""Small questions about objects as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Obj = dict[str, Any]

HASH = "controller-revision-hash"
POD_HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
NEVER_READY = "oarlock.io/sim-never-ready"
NO_IMAGE = ":nonexistent"
"""How an image ends that simulated kubelets cannot pull."""
ENDED = ("Succeeded", "Failed")


def labels(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotated(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def status(obj: Obj) -> Obj:
    return obj.get("status") or {}


def phase(pod: Obj) -> str:
    return str(status(pod).get("phase", ""))


def is_deleting(obj: Obj) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def is_active(pod: Obj) -> bool:
    return phase(pod) not in ENDED and not is_deleting(pod)


def is_ready(pod: Obj) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status(pod).get("conditions") or ())


def is_unpullable(pod: Obj) -> bool:
    """Whether it will never start."""
    return any(each["image"].endswith(NO_IMAGE) for each in pod["spec"]["containers"])


def controller(obj: Obj) -> Obj | None:
    """The reference to its controller."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return dict(reference)
    return None


def is_owned(obj: Obj, owner: Obj) -> bool:
    reference = controller(obj)
    return reference is not None and reference["uid"] == owner["metadata"]["uid"]


def revision_number(replicaset: Obj) -> int:
    """Of a Deployment's; 0 where it has none."""
    return int(annotated(replicaset).get(REVISION, 0))


def rolled_by(replicaset: Obj) -> str:
    """The UID of the Deployment that controls it; empty if none does."""
    reference = controller(replicaset)
    return str(reference["uid"]) if reference and reference["kind"] == "Deployment" else ""


def selector(owner: Obj) -> dict[str, str]:
    """Pairs it selects by; scenarios have no other selectors."""
    said = owner["spec"]["selector"]
    return dict(said) if owner["kind"] == "ReplicationController" else dict(said["matchLabels"])


def selects(pairs: Mapping[str, str], obj: Obj) -> bool:
    return pairs.items() <= labels(obj).items()


def target(pod: Obj) -> str:
    """The node it is on, or the one a daemon pod is made for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms") or [{}]
    return str(terms[0]["matchFields"][0]["values"][0]) if terms[0].get("matchFields") else ""


def taints(node: Obj) -> list[Obj]:
    return node["spec"].get("taints") or []


def stays(template: Obj, node: Obj) -> bool:
    """Whether daemon pods of this template may stay on a node: the labels are there and no NoExecute is in the way."""
    return selects(template["spec"].get("nodeSelector") or {}, node) and not _kept_off(template, node, ("NoExecute",))


def comes(template: Obj, node: Obj) -> bool:
    """Whether they may come to it."""
    return stays(template, node) and not _kept_off(template, node, ("NoSchedule",))


def _kept_off(template: Obj, node: Obj, effects: tuple[str, ...]) -> bool:
    """Scenarios tolerate by key with Exists only; cordons and the taints of a node's own state are tolerated."""
    tolerated = {each.get("key") for each in template["spec"].get("tolerations") or ()}
    return any(
        taint["effect"] in effects
        and taint["key"] not in tolerated
        and not taint["key"].startswith("node.kubernetes.io/")
        for taint in taints(node)
    )
