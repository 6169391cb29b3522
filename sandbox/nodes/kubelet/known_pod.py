"""What the simulated kubelet keeps of a pod, what it waits for, and what it asks to be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from oarlock.sandbox.nodes.api.pod_api import PodRef

Obj = dict[str, Any]


class Do(Enum):
    """What a timer of a pod is for."""

    START = "start"
    READY = "ready"
    END = "end"
    LOSE = "lose"


@dataclass(slots=True)
class Actions:
    """What to write: (pod, status) in order, then the pods to remove without grace."""

    statuses: list[tuple[PodRef, Obj]] = field(default_factory=list)
    removals: list[PodRef] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class KnownPod:
    """What the kubelet knows of one pod. `ready_ms` is the moment it becomes ready, None if not foreseen.

    `unseen`: the status it was started with, until that comes back. `looks`: how often it was not started for want of
    an image; `look_ms`: the moment of the next look at it.
    """

    obj: Obj
    started: bool = False
    ready: bool = False
    ready_ms: float | None = None
    end_ms: float | None = None
    over: bool = False
    unseen: Obj | None = None
    looks: int = 0
    look_ms: float = 0.0

    def seen(self, obj: Obj) -> None:
        """Somebody changed the pod; perhaps we did."""
        self.obj = obj
        if (obj.get("status") or {}).get("phase") != "Pending":
            self.unseen = None

    @property
    def present(self) -> Obj:
        """The pod with the status it was started with, even if that has not come back yet."""
        return self.obj if self.unseen is None else {**self.obj, "status": self.unseen}
