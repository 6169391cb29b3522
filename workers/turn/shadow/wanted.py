"""What a turn would have written about an owner, in the form in which it is held against what upstream did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from oarlock.controllers.history.model import HASH_LABEL
from oarlock.workers.turn.engine.dry_run import MADE, Decision
from oarlock.workers.turn.steps import Write

REPLICASETS = "replicasets"
"""Where there is no node, a create of a ReplicaSet is for this place."""
_TIMES = ("lastUpdateTime", "lastTransitionTime")
STATUS_MAX = 600
"""Characters kept of a status."""


class Wanted(msgspec.Struct, frozen=True, array_like=True):
    """``creates``: how many by place: a node, "" for pods that are alike, or ``REPLICASETS``. ``deletes``: UIDs.
    ``sizes``: of ReplicaSets, by UID; ``new_size``: of the one to create. ``touches``: UIDs of children to adopt, to
    release or to label anew. ``status``: the patch, without times; left out beside other writes, which change it.
    ``others``: whatever else, in words. ``revision``: of the daemon pods to create.
    """

    creates: Mapping[str, int] = {}
    deletes: frozenset[str] = frozenset()
    sizes: Mapping[str, int] = {}
    new_size: int = 0
    touches: frozenset[str] = frozenset()
    status: str = ""
    others: tuple[str, ...] = ()
    revision: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the owner is at rest."""
        return self == NOTHING


NOTHING = Wanted()


def wanted(decision: Decision) -> Wanted:
    """Of a turn that has come to its end."""
    nodes = {entry.target: entry.hint.removeprefix("node=") for entry in decision.entries if entry.verb == "create"}
    creates: dict[str, int] = {}
    deletes: set[str] = set()
    sizes: dict[str, int] = {}
    touches: set[str] = set()
    others: list[str] = []
    new_size, status, revision = 0, "", ""
    for write in decision.writes:
        match write.verb, write.resource:
            case "create", "pods":
                place = nodes.get(write.target, "")
                creates[place] = creates.get(place, 0) + 1
                revision = _labels(write).get(HASH_LABEL, "")
            case "create", "replicasets":
                creates[REPLICASETS] = creates.get(REPLICASETS, 0) + 1
            case "delete", "pods" | "replicasets":
                deletes.add(write.uid)
            case "patch", _ if write.resource == "pods" or b'"ownerReferences"' in write.body:
                touches.add(write.uid)  # adopted, released or labelled
            case "patch", "replicasets":
                size = _size(write)
                if size is None:
                    others.append(f"patch {write.target}")
                elif write.uid.startswith(MADE):
                    new_size = size
                else:
                    sizes[write.uid] = size
            case "status", _:
                status = _status(write)
            case _:
                others.append(f"{write.verb} {write.target}")
    if creates or deletes or sizes or touches:
        status = ""
    return Wanted(
        creates, frozenset(deletes), sizes, new_size, frozenset(touches), status, tuple(sorted(others)), revision
    )


def _labels(write: Write) -> dict[str, str]:
    return orjson.loads(write.body)["metadata"].get("labels") or {}


def _size(write: Write) -> int | None:
    spec: dict[str, Any] = orjson.loads(write.body).get("spec") or {}
    return spec.get("replicas")


def _status(write: Write) -> str:
    """Only what it changes counts, and no times, which are those of the moment."""
    patch: dict[str, Any] = orjson.loads(write.body)
    status = patch.get("status") or {}
    for condition in status.get("conditions") or ():
        for name in _TIMES:
            condition.pop(name, None)
    annotations = patch.get("metadata", {}).get("annotations")
    told = {"status": status, **({"annotations": annotations} if annotations else {})}
    return orjson.dumps(told, option=orjson.OPT_SORT_KEYS).decode()[:STATUS_MAX]
