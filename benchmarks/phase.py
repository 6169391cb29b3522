"""One thing asked of a running fleet, and what it took until all was at rest again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.audited import await_audited
from benchmarks.processes import CpuMeter
from benchmarks.report import Unfit
from benchmarks.tree import Tree
from benchmarks.worker_writes import WorkerWrites

ROLES = ("api", "redis", "ingestor", "worker", "supervisor")
REST_S = 0.3
"""How long no key may be queued, in work or delayed before a fleet is at rest: an event may be under way."""


@dataclass(frozen=True, slots=True)
class Phase:
    """``seconds`` as the act gave them; CPU in ms by role; turns by queue; the workers' writes by what they are."""

    seconds: float
    cpu_ms: Mapping[str, float]
    turns: Mapping[str, int]
    writes: Mapping[str, int]

    @property
    def all_cpu_ms(self) -> float:
        return sum(self.cpu_ms.values())


def measure(tree: Tree, act: Callable[[], float], limit_s: float) -> Phase:
    """``act`` returns the seconds that count. Raises Unfit where a process did not live through it."""
    await_rest(tree, limit_s)
    await_audited(tree, tree.state.audit_log)
    processes, before, writes = tree.roles(), tree.queued(), WorkerWrites(tree.state.audit_log)
    meter = CpuMeter(processes)
    seconds = act()
    await_rest(tree, limit_s)
    if tree.roles() != processes:
        raise Unfit("a process ended and was started again meanwhile")
    spent = meter.spent_ns()
    turns = {queue: count - before[queue] for queue, count in tree.queued().items() if count > before[queue]}
    return Phase(seconds, {role: spent.get(role, 0) / 1e6 for role in ROLES}, turns, _written(tree, writes))


def _written(tree: Tree, writes: WorkerWrites) -> Mapping[str, int]:
    await_audited(tree, tree.state.audit_log)
    return writes.since()


def await_rest(tree: Tree, limit_s: float) -> None:
    """Until nothing has been queued, in work or delayed for ``REST_S``. Raises Unfit after ``limit_s``."""
    quiet_since = time.monotonic()

    def rests() -> bool:
        nonlocal quiet_since
        if not tree.quiet():
            quiet_since = time.monotonic() + 0.005
        return time.monotonic() - quiet_since >= REST_S

    tree.await_true(rests, "rest", limit_s, 0.02)
