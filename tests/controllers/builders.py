"""Small builders, so that a case is one line."""

from collections.abc import Mapping
from typing import Any

import msgspec

from oarlock.controllers.objects.model import LabelSelector, OwnerRef, Pod, ReplicaSet, ReplicaSetStatus, label_selector
from oarlock.controllers.pods.slots import slots_of

NOW_MS = 1_750_000_000_000
S, H = 1000, 3_600_000
UID = "5f1d7a52-9f0e-4c0e-9d5e-2b0c7f1f0001"
OTHER_UID = "5f1d7a52-9f0e-4c0e-9d5e-2b0c7f1f0002"
WEB: Mapping[str, str] = {"app": "web"}
TEMPLATE = b'{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}'
OURS = OwnerRef("apps/v1", "ReplicaSet", "web", UID, True, True)
THEIRS = OwnerRef("apps/v1", "ReplicaSet", "api", OTHER_UID, True, True)
WEB_SLOTS = slots_of("web", UID)


def rs(replicas: int = 2, **fields: Any) -> ReplicaSet:
    """A ReplicaSet default/web that selects app=web."""
    base: dict[str, Any] = {
        "namespace": "default",
        "name": "web",
        "uid": UID,
        "generation": 1,
        "replicas": replicas,
        "selector": label_selector(WEB),
        "template": TEMPLATE,
        "template_labels": dict(WEB),
        "status": ReplicaSetStatus(observed_generation=1),
    }
    return ReplicaSet(**(base | fields))


def pod(name: str, **fields: Any) -> Pod:
    """A running, ready pod of default/web on node n1; its UID is `uid-<name>`."""
    base: dict[str, Any] = {
        "namespace": "default",
        "name": name,
        "uid": f"uid-{name}",
        "labels": dict(WEB),
        "owner_refs": (OURS,),
        "node_name": "n1",
        "phase": "Running",
        "created_ms": NOW_MS - H,
        "ready": True,
        "ready_since_ms": NOW_MS - H,
    }
    return Pod(**(base | fields))


_UNREADY: dict[str, Any] = {"ready": False, "ready_since_ms": 0}
_LETTERS: dict[str, dict[str, Any]] = {
    "R": {},  # running and ready
    "n": _UNREADY,  # running, not ready
    "p": {"phase": "Pending", **_UNREADY},
    "u": {"phase": "Pending", "node_name": "", **_UNREADY},  # unassigned
    "t": {"deleting_ms": NOW_MS - S},  # terminating
    "F": {"phase": "Failed", **_UNREADY},
    "S": {"phase": "Succeeded", **_UNREADY},
    "o": {"owner_refs": ()},  # orphan that is selected
    "m": {"labels": {"app": "else"}},  # ours, no longer selected
    "x": {"owner_refs": (THEIRS,)},  # another's, though selected
}


def pods(letters: str) -> tuple[Pod, ...]:
    """One pod a letter, the i-th bearing the name of slot i. See the table above."""
    return tuple(pod(WEB_SLOTS.name(i), **_LETTERS[letter]) for i, letter in enumerate(letters))


def slot_names(*indices: int) -> tuple[str, ...]:
    """Names of slots of default/web."""
    return tuple(WEB_SLOTS.name(i) for i in indices)


def with_fields(obj: Any, **fields: Any) -> Any:
    """A copy with some fields changed."""
    return msgspec.structs.replace(obj, **fields)


def selector_of(labels: Mapping[str, str]) -> LabelSelector:
    """A valid selector by equality."""
    return label_selector(labels)
