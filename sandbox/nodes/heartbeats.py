"""When which kubelet repeats its node's status. Pure: no I/O, no clock.

Upstream a kubelet renews a Lease every ten seconds and its status every five minutes if nothing has changed
(pkg/kubelet: nodeStatusReportFrequency). Nothing here decides by the age of either, so there are no Leases, and the
repeated status is there for who watches nodes and should not care. Nodes take turns: a heartbeat is one write.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

from oarlock.sandbox.nodes.lifecycle import readiness
from oarlock.sandbox.nodes.timers import Timers

Obj = dict[str, Any]

TICK_MS: Final = 1_000.0  # heartbeats due within this are written together


class Heartbeats:
    """Told of every change of nodes; `due` says whose status to repeat. `period_ms` 0: nobody's."""

    def __init__(self, period_ms: float) -> None:
        self._period_ms = period_ms
        self._due_ms: dict[str, float] = {}
        self._timers: Timers[tuple[str, float]] = Timers()

    def next_ms(self) -> float | None:
        """When `due` is to be asked again."""
        first = self._timers.next_ms()
        return None if first is None else first + TICK_MS

    def node_changed(self, node: Obj, now_ms: float) -> None:
        """The first turn of a node is somewhere within the period, by its name; one out of reach has none."""
        name = node["metadata"]["name"]
        if not self._period_ms or readiness(node) not in ("True", "False"):
            self._due_ms.pop(name, None)
        elif name not in self._due_ms:
            self._set(name, now_ms + self._period_ms * zlib.crc32(name.encode()) / 2**32)

    def node_gone(self, name: str) -> None:
        self._due_ms.pop(name, None)

    def due(self, now_ms: float, count_max: int) -> list[str]:
        """Whose turn it is, at most so many."""
        names = []
        for name, due_ms in self._timers.pop_due(now_ms, count_max):
            if self._due_ms.get(name) == due_ms:
                names.append(name)
                self._set(name, now_ms + self._period_ms)
        return names

    def _set(self, name: str, due_ms: float) -> None:
        self._due_ms[name] = due_ms
        self._timers.add(due_ms, (name, due_ms))
