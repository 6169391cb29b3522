"""The fleet's Lease in the Kubernetes API: which epoch, on which Redis, in which phase. It has one name in a cluster,
so a second fleet finds it taken.

Each shard has one. The number of shards is not in its name but in the Lease itself. So two fleets that divide the
cluster differently meet at the Lease of shard 0, which decides between them, and a shard's epochs go on counting
through every division. ``moving`` in the Lease of shard 0 says that the division was changed and that processes of the
last one may still be writing.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Protocol

from oarlock.cluster.answer import Answer
from oarlock.cluster.lease import HeldLease, LeaseCell, LeaseSpec, Swap
from oarlock.workers.process.io_loop import IoLoop

LEASE_NAME = "oarlock"
"""The Lease of shard 0, which is the only one of an undivided fleet."""
_PREFIX = "oarlock.io/"
DRAIN, OPEN = "DRAIN", "OPEN"
PAUSED = "HELD"
"""A phase that only Redis shows: open, but the fleet is stopped."""

Swapped = tuple[Swap, HeldLease | None, Answer]


@dataclass(frozen=True, slots=True)
class FleetLease:
    """What the Lease says. ``holder``: who wrote it last; "" after a bootstrapper gave up in good order.

    ``renewed_ms`` is the holder's wall clock. Invariant: ``epoch`` grows with every change of ``run``. ``shards``: how
    many the cluster is divided into. ``moving``: the number of shards of the largest earlier division that may still
    have writes in flight; 0 if only this one may. ``pauses``: what people have paused, as ``broker.pauses`` packs it.
    """

    fleet: str
    protocol: int
    epoch: int
    run: str
    phase: str
    holder: str
    renewed_ms: int
    transitions: int = 0
    shards: int = 1
    moving: int = 0
    pauses: str = ""

    @classmethod
    def of(cls, spec: LeaseSpec) -> FleetLease:
        """From a Lease as read. A Lease that no fleet wrote has the fleet "" and counts as another fleet's."""
        notes = {name.removeprefix(_PREFIX): text for name, text in spec.annotations.items()}
        return cls(
            fleet=notes.get("fleet", ""),
            protocol=_number(notes.get("protocol")),
            epoch=_number(notes.get("epoch")),
            run=notes.get("redis-run-id", ""),
            phase=notes.get("phase", ""),
            holder=spec.holder,
            renewed_ms=spec.renewed_ms,
            transitions=spec.transitions,
            shards=_number(notes.get("shards")) or 1,
            moving=_number(notes.get("moving")),
            pauses=notes.get("pauses", ""),
        )

    def spec(self, duration_ms: int, before: LeaseSpec | None) -> LeaseSpec:
        """What to write; keeps the annotations of others."""
        notes = {
            "fleet": self.fleet,
            "protocol": str(self.protocol),
            "epoch": str(self.epoch),
            "redis-run-id": self.run,
            "phase": self.phase,
        }
        kept = before.annotations if before is not None else {}
        some = {"shards": self.shards if self.shards > 1 else "", "moving": self.moving or "", "pauses": self.pauses}
        kept = {name: text for name, text in kept.items() if name.removeprefix(_PREFIX) not in some}
        notes |= {name: str(value) for name, value in some.items() if value}
        same_epoch = before is not None and FleetLease.of(before).epoch == self.epoch
        return LeaseSpec(
            holder=self.holder,
            duration_s=max(1, duration_ms // 1000),
            acquired_ms=before.acquired_ms if before is not None and same_epoch else self.renewed_ms,
            renewed_ms=self.renewed_ms,
            transitions=self.transitions,
            annotations={**kept, **{_PREFIX + name: text for name, text in notes.items()}},
        )

    def renewed(self, holder: str, now_wall_ms: int, phase: str = "") -> FleetLease:
        """The same epoch, confirmed by ``holder``, in ``phase`` if one is given. OPEN ends ``moving``: D has passed."""
        moving = 0 if phase == OPEN else self.moving
        return replace(self, holder=holder, renewed_ms=now_wall_ms, phase=phase or self.phase, moving=moving)

    def still_moving(self, shards: int) -> int:
        """The value of ``moving`` for a next epoch with so many ``shards``."""
        return self.moving if self.shards == shards else max(self.moving, self.shards)


def lease_name(tag: str) -> str:
    """The Lease of a shard: ``oarlock``, ``oarlock-1``, ``oarlock-2``, ...; of an operator: ``oarlock-<fleet>``."""
    return LEASE_NAME if tag == "0" else f"{LEASE_NAME}-{tag}"


class LeaseStore(Protocol):
    """Reads and swaps the Lease without blocking: each answer is a future."""

    def read(self) -> Future[HeldLease | None]: ...

    def swap(self, before: HeldLease | None, after: LeaseSpec) -> Future[Swapped]: ...


class ApiLease:
    """The real one; its requests run on the I/O loop."""

    def __init__(self, io: IoLoop, cell: LeaseCell) -> None:
        self._io, self._cell = io, cell

    def read(self) -> Future[HeldLease | None]:
        return self._io.submit(self._cell.read())

    def swap(self, before: HeldLease | None, after: LeaseSpec) -> Future[Swapped]:
        return self._io.submit(self._cell.swap(before, after))


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0
