"""What people have paused outlives the data in Redis: the Lease has it too, and a new epoch begins with it."""

from __future__ import annotations

from oarlock.broker.pauses import digest, keepable, packed, unpacked
from oarlock.broker.protocol import Broker
from oarlock.workers.epoch.fleet_lease import OPEN, FleetLease


def pauses_to_write(broker: Broker, lease: FleetLease | None) -> str | None:
    """The pauses that the Lease still lacks; None where it has them, of which Redis is told. Only an open epoch's
    count: in a young one the bootstrapper may not have restored them yet. Raises what the broker raises.
    """
    if lease is None or lease.phase != OPEN or lease.epoch != broker.epoch:
        return None
    paused = broker.pauses()
    pauses = keepable(paused.texts)
    if (text := packed(pauses)) != lease.pauses:
        return text
    # Another ingestor, with an older look at the Lease, may have told Redis of others since.
    if (now := digest(pauses)) != paused.kept:
        broker.steer("kept", now, "")
    return None


def restore(broker: Broker, lease: FleetLease) -> None:
    """Put what the Lease has into a new epoch, before any turn of it begins. Raises what the broker raises."""
    for scope, text in keepable(unpacked(lease.pauses)).items():
        broker.steer("restore", scope, text)
