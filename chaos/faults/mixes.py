"""Which faults a campaign mixes, and how densely: the usual mixture, and others that play one sort by the thousand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mix:
    """``shares``: kind -> how many of each there are in so many faults; the first kind takes the rest.

    ``fault_s``: how far apart faults are by default. ``hosts``: each with a supervisor; ``ingestors``: whether the
    further ones have an ingestor, too. ``after_loss_s``: after D, until the next fault may come. ``queued_max``: while
    more keys are queued a fault waits; 0: none does. ``overtime``: so many times the duration all may take; faults that
    are due later are left out.
    """

    what: str
    shares: Mapping[str, int]
    fault_s: float
    hosts: int = 2
    ingestors: bool = False
    after_loss_s: float = 3.0
    """To notice, to list, and for the first turns."""
    losses_share_max: float = 0.6
    """The share of the duration that losses of Redis may take."""
    queued_max: int = 0
    overtime: float = 1.2


KEPT_UP = 40
"""A fleet that keeps up with the load has fewer keys in its queues. Faults that come faster than it can start workers
anew would prove nothing about how long a key waits.
"""
USUAL, POINTS, HOSTS, LOSSES = "usual", "points", "hosts", "losses"
MIXES: Mapping[str, Mix] = {
    USUAL: Mix(
        "kills of busy workers, and in 300 faults 30 of ingestors, 15 of supervisors, 10 pauses, 5 losses of Redis",
        {"worker": 240, "ingestor": 30, "supervisor": 15, "pause": 10, "redis": 5},
        fault_s=0.8,
    ),
    POINTS: Mix(
        "workers kill themselves at 20 named points of their turns, each as often as the others",
        {"point": 1},
        fault_s=0.125,
        queued_max=KEPT_UP,
        overtime=5.0,
    ),
    HOSTS: Mix(
        "of four hosts: supervisors and ingestors are killed, hosts and workers stand still for longer than the lease",
        {"supervisor": 1, "ingestor": 1, "pause": 1},
        fault_s=1.0,
        hosts=4,
        ingestors=True,
        queued_max=KEPT_UP,
        overtime=3.0,
    ),
    LOSSES: Mix(
        "Redis is emptied, or killed without its data, again and again",
        {"redis": 1},
        fault_s=8.0,
        after_loss_s=2.0,
        losses_share_max=1.0,
    ),
}
