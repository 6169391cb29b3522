"""How far a DaemonSet is, by kubectl."""

from __future__ import annotations

from tests.e2e.e2e_kubectl import Kubectl, Obj, until


def on_own(kubectl: Kubectl, **more: object) -> Obj:
    """Of a pod that runs on the test's own nodes only."""
    return {"nodeSelector": {"own": kubectl.namespace}, **more}


def pods_of(kubectl: Kubectl, name: str = "agent") -> list[Obj]:
    """Those that are not on their way out."""
    return [pod for pod in kubectl.items("pods", "-l", f"app={name}") if not pod["metadata"].get("deletionTimestamp")]


COUNTS = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady")


def settled(kubectl: Kubectl, count: int, name: str = "agent", limit_s: float = 30) -> list[Obj]:
    """Wait until the status says that ``count`` nodes have a ready pod of the present template. Returns the pods."""

    def is_so() -> bool:
        found = kubectl.json("get", "ds", name)
        status = found.get("status") or {}
        numbers = [status.get(field, 0) for field in (*COUNTS, "numberAvailable")]
        spoken_of = status.get("observedGeneration") == found["metadata"]["generation"]
        return spoken_of and numbers == [count] * 5 and not status.get("numberMisscheduled")

    until(is_so, limit_s, f"{count} ready pods of {name}")
    return pods_of(kubectl, name)


def revisions(kubectl: Kubectl, name: str = "agent") -> list[Obj]:
    """In the order of their numbers."""
    return sorted(kubectl.items("controllerrevisions", "-l", f"app={name}"), key=lambda each: int(each["revision"]))


def status(kubectl: Kubectl, field: str, name: str = "agent") -> int:
    return int((kubectl.json("get", "ds", name).get("status") or {}).get(field, 0))
