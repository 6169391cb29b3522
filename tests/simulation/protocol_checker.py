"""The invariants of the protocol that hold whatever kind of owner is looked after."""

from __future__ import annotations

from dataclasses import dataclass, field

from oarlock.broker.values.claims import Batch
from tests.simulation.checker import Violation, count_loads, count_open, view_of
from tests.simulation.daemon_world import DaemonWorld


@dataclass
class ProtocolChecker:
    """I4 fenced steps exclusive, I6 watermarks."""

    world: DaemonWorld
    nonces: dict[str, str] = field(default_factory=dict)
    marks: dict[tuple[int, str], int] = field(default_factory=dict)

    def claimed(self, key: str, nonce: str) -> None:
        self.nonces[key] = nonce

    def viewed(self, holder: str, batch: Batch) -> None:
        """A worker was handed keys, with what a turn over them reads."""
        self.world.views[holder] = view_of(batch, self.world.clock_ms())
        for claim in batch.claims:
            count_open(claim, self.world)

    def loaded(self, before: Batch, after: Batch) -> None:
        """A worker has read what its claims left to be loaded."""
        count_loads(before, after, self.world)

    def accepted(self, key: str, nonce: str, step: str) -> None:
        """A fenced step was accepted: only the newest claim may."""
        if self.nonces.get(key) != nonce:
            raise Violation(f"I4: {step} of an earlier holder of {key} was accepted")

    def watermark_is(self, epoch: int, resource: str, mark: int) -> None:
        """It never goes back inside an epoch."""
        last = self.marks.get((epoch, resource), 0)
        if mark < last:
            raise Violation(f"I6: the watermark of {resource} went from {last} back to {mark}")
        self.marks[epoch, resource] = mark
