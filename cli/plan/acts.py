"""What the writes of turns mean to people: acts, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from oarlock.cli.plan.cluster_copy import PLANNED, ClusterCopy
from oarlock.cli.plan.family import Family
from oarlock.cli.plan.kubelet import pinned_node
from oarlock.cli.plan.reasons import why_daemon_goes, whys_of_victims
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.objects.model import Pod, is_active
from oarlock.controllers.pods.slots import SUFFIX_CHARS, base_of
from oarlock.controllers.registry import WATCHED
from oarlock.workers.turn.steps import Write

Obj = dict[str, Any]
UNKNOWN = "?" * SUFFIX_CHARS
"""In place of the part of a pod's name that depends on the UID of its owner."""


class Act(NamedTuple):
    """``verb``: create, scale, delete, adopt, release or change. ``before`` and ``after``: sizes. ``fields``: that a
    change touches.
    """

    verb: str
    kind: str
    name: str
    why: str = ""
    node: str = ""
    before: int | None = None
    after: int | None = None
    fields: tuple[str, ...] = ()

    def facts(self) -> Obj:
        """Without what is empty."""
        return {key: value for key, value in self._asdict().items() if value not in ("", None, ())}


def acts_of(writes: Sequence[Write], copy: ClusterCopy, family: Family, now_ms: int) -> list[Act | None]:
    """What the writes of a step mean, one by one, before they are carried out. What only tells a status is no act."""
    pods = [each for each in writes if each.verb == "delete" and each.resource == "pods"]
    whys = _whys_of_deletes([each.name for each in pods], copy, family, now_ms) if pods else {}
    return [_act_of(each, copy, whys) for each in writes]


def _act_of(write: Write, copy: ClusterCopy, whys: dict[str, str]) -> Act | None:
    kind, name = WATCHED[write.resource].kind, write.name
    live = copy.get(write.resource, write.namespace, name)
    if write.verb == "status" or (live is None and write.verb != "create"):
        return None
    body: Obj = orjson.loads(write.body) if write.body else {}
    if write.verb == "create":
        node = pinned_node(body) if write.resource == "pods" else ""
        return Act("create", kind, _name(body, name), node=node, after=body.get("spec", {}).get("replicas"))
    assert live is not None
    if write.verb == "delete":
        return Act("delete", kind, _name(live, name), whys.get(name, ""), live.get("spec", {}).get("nodeName", ""))
    references = body.get("metadata", {}).get("ownerReferences")
    if references:
        releases = any("$patch" in each for each in references)
        return Act("release" if releases else "adopt", kind, name)
    before, after = live.get("spec", {}).get("replicas"), body.get("spec", {}).get("replicas")
    if after is not None and before != after:
        return Act("scale", kind, name, before=before, after=after)
    return Act("change", kind, name, fields=tuple(_touched(body)))


def _name(obj: Obj, name: str) -> str:
    """With its last part unknown, where it depends on the UID of an owner that does not exist yet."""
    ref = next((each for each in obj["metadata"].get("ownerReferences", ()) if each.get("controller")), None)
    planned = obj.get("kind") == "Pod" and ref is not None and ref["uid"].startswith(PLANNED)
    return base_of(ref["name"]) + UNKNOWN if ref is not None and planned else name


def _touched(body: Obj) -> list[str]:
    metadata = body.get("metadata", {})
    parts = [f"metadata.{part}" for part in metadata if part not in ("uid", "resourceVersion")]
    return parts + [part if part == "revision" else f"spec.{part}" for part in body.get("spec", {})]


def _whys_of_deletes(names: Sequence[str], copy: ClusterCopy, family: Family, now_ms: int) -> dict[str, str]:
    doomed = [pod for name in names if (pod := family.pods.get(name)) is not None]
    if family.daemonset is not None:
        current = _newest_hash(copy, family.owner.uid)
        placement = family.daemonset.placement
        return {
            pod.name: why_daemon_goes(pod, family.nodes, placement, pod.labels.get(HASH_LABEL) == current)
            for pod in doomed
        }
    whys: dict[str, str] = {}
    for uid in {family.owner_of(pod) for pod in doomed}:
        own: list[Pod] = [pod for pod in family.pods.values() if family.owner_of(pod) == uid and is_active(pod)]
        going = [pod for pod in doomed if family.owner_of(pod) == uid]
        staying = [pod for pod in own if pod.name not in names]
        whys |= whys_of_victims(going, staying, family.pods.values(), family.min_ready_seconds, now_ms)
    return whys


def _newest_hash(copy: ClusterCopy, owner_uid: str) -> str:
    """Of a DaemonSet's present template."""
    own = [
        each
        for each in copy.of("controllerrevisions")
        if any(ref["uid"] == owner_uid for ref in each["metadata"].get("ownerReferences", ()))
    ]
    newest = max(own, key=lambda each: int(each.get("revision", 0)), default=None)
    return str((newest["metadata"].get("labels") or {}).get(HASH_LABEL, "")) if newest is not None else ""
