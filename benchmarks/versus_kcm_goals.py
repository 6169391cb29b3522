"""What was reached beside what is asked for. Figures in, verdicts out; a figure that was not measured has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """``fact``: name of the figure. ``least``: whether the bound is the least or else the most that will do."""

    title: str
    fact: str
    bound: float
    least: bool
    unit: str

    def reached(self, value: float) -> bool:
        return value >= self.bound if self.least else value <= self.bound

    def row(self, facts: Mapping[str, float]) -> tuple[str, str, str, str]:
        """Title, goal, what was reached, verdict."""
        asked = f"{'>=' if self.least else '<='} {self.bound:g}{self.unit}"
        if self.fact not in facts:
            return self.title, asked, "", "not measured"
        value = facts[self.fact]
        return self.title, asked, f"{value:,.2f}{self.unit}", "reached" if self.reached(value) else "MISSED"


GOALS = (
    Goal("one large ReplicaSet, wall time", "speed_large", 1.0, True, " x"),
    Goal("many small ReplicaSets, wall time", "speed_many", 1.0, True, " x"),
    Goal("a DaemonSet, wall time", "speed_daemonset", 1.0, True, " x"),
    Goal("many Deployments rolled, wall time", "speed_rolled_many", 1.0, True, " x"),
    Goal("one large Deployment rolled, wall time", "speed_rolled_large", 1.0, True, " x"),
    Goal("one large ReplicaSet, CPU a pod", "cpu_large", 1.3, False, " x"),
    Goal("many small ReplicaSets, CPU a pod", "cpu_many", 1.3, False, " x"),
    Goal("a DaemonSet, CPU a pod", "cpu_daemonset", 1.3, False, " x"),
    Goal("idle, owner POST to pod, p50", "idle_p50_ms", 5.0, False, " ms"),
    Goal("idle, owner POST to pod, p99", "idle_p99_ms", 20.0, False, " ms"),
    Goal("failover, p99", "failover_p99_ms", 100.0, False, " ms"),
)


def speed(upstream_s: float, fleet_s: float) -> float:
    """Of the fleet in wall time, 1 being upstream's; 2 is twice as fast."""
    return upstream_s / fleet_s


def cost(upstream_ms: float, fleet_ms: float) -> float:
    """CPU of the fleet, 1 being upstream's; 2 is twice as much."""
    return fleet_ms / upstream_ms
