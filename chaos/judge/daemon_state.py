"""One DaemonSet at a moment of the history: its pods by node, where it belongs, and by which rule it may be rolled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from oarlock.chaos.judge.evidence.placing import Place
from oarlock.chaos.judge.evidence.sightings import DaemonSetSeen, PodSeen


class Read(NamedTuple):
    """What a decision had read: resource -> revision, and when its key was claimed."""

    at_s: float
    marks: Mapping[str, int]

    def has(self, resource: str, rv: int) -> bool:
        return rv <= self.marks[resource]


class Rule(NamedTuple):
    """maxUnavailable in nodes, and whether it surges, from a revision of a resource on."""

    rv: int
    resource: str
    at_s: float
    limit: int
    surges: bool


@dataclass(slots=True)
class Daemons:
    """One DaemonSet, by uid. ``moved``: node and resource -> revision that last changed whether it belongs there.

    ``down``: nodes down through us; ``lost``: node -> revision at which an available pod there was lost to others.
    """

    seen: DaemonSetSeen
    pods: dict[str, PodSeen] = field(default_factory=dict)
    adopted: set[str] = field(default_factory=set)
    places: dict[str, Place] = field(default_factory=dict)
    moved: dict[tuple[str, str], int] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    down: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    settled_s: float = math.inf

    def on(self, node: str) -> list[PodSeen]:
        """Its pods there, for what they are worth."""
        return [pod for pod in self.pods.values() if pod.target == node]

    def is_up(self, node: str, at_s: float) -> bool:
        return any(pod.available(at_s, self.seen.min_ready_s) for pod in self.on(node))

    def look(self, node: str, at_s: float) -> None:
        """Notice that a node is up again."""
        if node in self.down and self.is_up(node, at_s):
            del self.down[node]

    def rules_since(self, read: Read) -> Sequence[Rule]:
        """The rules that were in force at some time since the decision read them."""
        first = next(
            (at for at, rule in enumerate(self.rules) if not read.has(rule.resource, rule.rv)), len(self.rules)
        )
        return self.rules[max(0, first - 1) :]
