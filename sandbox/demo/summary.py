"""The results that `oarlock run` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oarlock.controllers.registry import CONTROLLERS
from oarlock.sandbox.demo.deployments import RolledOut
from oarlock.sandbox.demo.takeover import Takeover


@dataclass(slots=True)
class Rolled:
    """A DaemonSet that was rolled to another revision and back.

    ``down_allowed``: nodes that may be without an available pod meanwhile, ``most_down``: that were at the same time,
    None while not counted. ``revisions``: number of each revision, by name, in the end. ``from_rv``: when it began.
    """

    title: str
    uid: str
    nodes: int
    down_allowed: int
    surge: int
    min_ready_s: int
    from_rv: int
    revisions: dict[str, int] = field(default_factory=dict)
    most_down: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "nodes": self.nodes,
            "max_unavailable": self.down_allowed,
            "max_surge": self.surge,
            "most_nodes_down": self.most_down,
            "revisions": self.revisions,
        }


@dataclass(slots=True)
class Summary:
    """What `oarlock run -o json` prints; see the command's help. ``owners``: how many of each kind."""

    owners: dict[str, int] = field(default_factory=dict)
    pods: int = 0
    ready_s: float = 0.0
    takeover: Takeover | None = None
    scaled: dict[str, list[int]] = field(default_factory=dict)
    ready_again_s: float | None = None
    pods_after: int = 0
    rolled: list[Rolled] = field(default_factory=list)
    roll_s: float | None = None
    back_s: float | None = None
    roll_killed: bool = False
    roll_takeover: Takeover | None = None
    rolled_out: RolledOut | None = None
    too_many: dict[str, int] = field(default_factory=dict)
    duplicates: dict[str, int] = field(default_factory=dict)
    events: int = 0
    counted: bool = True

    def as_json(self) -> dict[str, Any]:
        kinds = {each.resource: self.owners.get(each.flavour.kind, 0) for each in CONTROLLERS.values()}
        return {
            **kinds,
            "pods": self.pods,
            "ready_s": self.ready_s,
            "pods_per_s": round(self.pods / self.ready_s, 1) if self.ready_s else None,
            "chaos": self._chaos(),
            "rollout": self._rollout(),
            "deployment": self.rolled_out.as_json() if self.rolled_out else None,
            "pods_too_many": sum(self.too_many.values()) if self.counted else None,
            "pods_too_many_by_set": self.too_many,
            "duplicate_daemon_pods": sum(self.duplicates.values()) if self.counted else None,
            "duplicate_daemon_pods_by_set": self.duplicates,
            "events_counted": self.events,
        }

    def _chaos(self) -> dict[str, Any] | None:
        if not self.scaled:
            return None
        again = {"ready_again_s": self.ready_again_s, "pods": self.pods_after}
        return {"scaled": self.scaled, **_kill(self.takeover), **again}

    def _rollout(self) -> dict[str, Any] | None:
        if not self.rolled:
            return None
        return {
            "daemonsets": {each.title: each.as_json() for each in self.rolled},
            "roll_s": self.roll_s,
            "back_s": self.back_s,
            "kill": _kill(self.roll_takeover) if self.roll_killed else None,
        }


def _kill(takeover: Takeover | None) -> Mapping[str, Any]:
    return {
        "killed_worker": takeover.worker if takeover else None,
        "killed_pid": takeover.pid if takeover else None,
        "writes_in_flight": takeover.pending if takeover else None,
        "keys_held": [held.task for held in takeover.held] if takeover else [],
        "takeover_ms": takeover.claimed_ms if takeover else {},
        "takeover_max_ms": max(takeover.claimed_ms.values(), default=None) if takeover else None,
        "taken_over": takeover.complete if takeover else False,
    }


def told(takeover: Takeover | None) -> str:
    """The kill in a sentence or two."""
    if takeover is None:
        return "no worker was caught with writes in flight: nothing was killed"
    keys = ", ".join(held.task.partition(":")[2] for held in takeover.held)
    text = (
        f"SIGKILL to worker {takeover.worker} (pid {takeover.pid}), which held {keys}"
        f" with {takeover.pending} writes not yet answered"
    )
    if not takeover.complete:
        return text + "; not all its keys were claimed again in time"
    times = ", ".join(
        f"{held.task.partition(':')[2]} after {takeover.claimed_ms[held.task]:g} ms" for held in takeover.held
    )
    return f"{text}\ntaken over by {', '.join(sorted(set(takeover.new_holders.values())))}: {times}"
