"""What a wait may wait for: ready-made conditions that can say what is still missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Obj = dict[str, Any]
Found = Obj | list[Obj] | None
"""One object, or None where there is none; of a kind: the list."""


class Condition:
    """Called with what was found, it says whether that will do; ``missing`` says in words what is missing, or ""."""

    def __init__(self, name: str, missing: Callable[[Found], str]) -> None:
        self.name, self.missing = name, missing

    def __call__(self, found: Found) -> bool:
        return not self.missing(found)

    def __repr__(self) -> str:
        return f"oarlock.testing.{self.name}"


def _missing_until_ready(found: Found) -> str:
    if isinstance(found, list):
        unready = [f"{each['metadata']['name']}: {why}" for each in found if (why := _missing_until_ready(each))]
        return "; ".join(unready) if found else "there is none"
    if found is None:
        return "it does not exist"
    by_kind: dict[str, Callable[[Obj], str]] = {
        "Deployment": _of_deployment,
        "ReplicaSet": _of_replicas,
        "ReplicationController": _of_replicas,
        "DaemonSet": _of_daemon_set,
        "Pod": lambda obj: _of_condition(obj, "Ready", "True"),
        "Node": lambda obj: _of_condition(obj, "Ready", "True"),
        "Namespace": lambda obj: _unequal(obj, [("status.phase", _of(obj, "phase"), "Active")]),
    }
    if found["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    look = by_kind.get(found["kind"])
    if look is None:
        ready = _of_condition(found, "Ready", "True") if _conditions(found, "Ready") else ""
        return ready or _unobserved(found)
    return _unobserved(found) or look(found)


def _of(obj: Obj, name: str) -> Any:
    return obj.get("status", {}).get(name, 0)


def _unobserved(obj: Obj) -> str:
    """A controller that says which generation it has seen has seen the present one."""
    generation, observed = obj["metadata"].get("generation"), obj.get("status", {}).get("observedGeneration")
    if generation is None or observed is None or observed >= generation:
        return ""
    return f"status.observedGeneration is {observed}, metadata.generation {generation}"


def _unequal(obj: Obj, wanted: Iterable[tuple[str, Any, Any]]) -> str:
    return "; ".join(f"{name} is {found}, not {value}" for name, found, value in wanted if found != value)


def _of_deployment(obj: Obj) -> str:
    """As `kubectl rollout status` (upstream: staging/src/k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go)."""
    if "observedGeneration" not in obj.get("status", {}):
        return "no controller has reported its status"
    replicas = obj["spec"].get("replicas", 1)
    names = ("updatedReplicas", "replicas", "availableReplicas")
    return _unequal(obj, [(f"status.{name}", _of(obj, name), replicas) for name in names])


def _of_replicas(obj: Obj) -> str:
    if "observedGeneration" not in obj.get("status", {}):
        return "no controller has reported its status"
    replicas = obj["spec"].get("replicas", 1)
    names = ("replicas", "readyReplicas")
    return _unequal(obj, [(f"status.{name}", _of(obj, name), replicas) for name in names])


def _of_daemon_set(obj: Obj) -> str:
    if "observedGeneration" not in obj.get("status", {}):
        return "no controller has reported its status"
    wanted = _of(obj, "desiredNumberScheduled")
    names = ("updatedNumberScheduled", "numberAvailable")
    return _unequal(obj, [(f"status.{name}", _of(obj, name), wanted) for name in names])


def _conditions(obj: Obj, type_: str) -> list[Obj]:
    return [each for each in obj.get("status", {}).get("conditions") or () if each.get("type") == type_]


def _of_condition(obj: Obj, type_: str, status: str) -> str:
    found = next(iter(_conditions(obj, type_)), None)
    if found is None:
        return f"it has no condition {type_}"
    if found["status"] == status:
        return ""
    why = ": ".join(filter(None, (found.get("reason"), found.get("message"))))
    return f"condition {type_} is {found['status']}, not {status}" + (f" ({why})" if why else "")


ready = Condition("ready", _missing_until_ready)
"""A workload whose controller has brought all replicas of its present spec up; a pod or node that is ready; of another
kind: status.observedGeneration is the present one, and its condition Ready is True, as far as it has them. Of a list:
all of it."""

exists = Condition("exists", lambda found: "" if found else "there is none" if found == [] else "it does not exist")
gone = Condition("gone", lambda found: "it is still there" if found else "")
"""There is no such object, or none of a kind."""


def condition(type_: str, status: str = "True") -> Condition:
    """An object whose condition of this type has this status."""

    def missing(found: Found) -> str:
        if isinstance(found, list):
            return "a condition is asked of one object: wait for kind/name"
        return "it does not exist" if found is None else _of_condition(found, type_, status)

    return Condition(f"condition({type_!r}, {status!r})", missing)
