"""The faults that `oarlock chaos --only NAME` plays, one sort a run: what each is, how long it lasts, what it needs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from oarlock.chaos.faults.network import API, REDIS
from oarlock.chaos.faults.schedule import WARM_UP_S, Planned, Timing

CALM_S = 4.0
"""Between two episodes, beside what the fleet needs to come back."""


class Needs(StrEnum):
    """What a fault asks of the rig."""

    NETWORK = "network"
    """Host 2 behind proxies."""
    CLOCK = "clock"
    """A Redis whose clock can be set (libfaketime)."""
    LOG = "log"
    """A Redis with an append-only file."""
    PAIR = "pair"
    """Two equal hosts, and a master with its replica."""
    SENTINELS = "sentinels"
    """The same, with Sentinels."""
    RQ = "rq"
    """A Redis for RQ's keys alone."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One sort of fault. ``leases``, ``drains``: how long it lasts, as multiples of a lease and of D.

    ``whole``: it concerns the whole fleet, which may stand still meanwhile; otherwise one host is hit, and the other
    has to go on with every owner. ``drained``: it ends an epoch, and D is waited out. ``pace``: how much slower than
    usual the load is, so that owners are left alone for long enough to see that they get on.
    """

    what: str
    leases: float = 0.0
    drains: float = 0.0
    needs: Needs | None = None
    whole: bool = False
    drained: bool = False
    pace: float = 6.0

    def lasts_s(self, timing: Timing, chance: random.Random) -> float:
        least_s = self.leases * timing.lease_s + self.drains * timing.drain_s
        return least_s + (chance.uniform(0.5, 2.0) if least_s else 0.0)

    def takes_s(self, timing: Timing) -> float:
        """From its beginning until the next may begin."""
        back_s = timing.drain_s + CALM_S if self.drained else timing.lease_s
        return self.leases * timing.lease_s + self.drains * timing.drain_s + 2.0 + back_s + CALM_S


_BAD_WIRE = {
    "cut": "nothing passes, and comes late",
    "one-way": "requests pass and answers do not, or the other way round",
    "reset": "every connection is reset, again and again",
    "refuse": "connections are refused",
    "trickle": "512 bytes at a time",
    "slow": "50 to 400 ms each way",
    "flap": "cut and whole by turns, each 0.1 to 1.5 s",
}

EPISODES: Mapping[str, Episode] = {
    **{
        f"{wire}-{mode}": Episode(f"host 2 and {named}: {what}", leases=2, needs=Needs.NETWORK)
        for wire, named in ((REDIS, "Redis"), (API, "the API"))
        for mode, what in _BAD_WIRE.items()
    },
    "refused-names": Episode(
        "one name in eight is answered 500 for ever, to POST or DELETE, stored or not; the others go on",
        drains=6,
        pace=12.0,
    ),
    "host-death": Episode("a supervisor and all its workers are killed at once"),
    "host-freeze": Episode("a supervisor and all its workers are frozen for longer than D, and go on", drains=1),
    "slow-redis": Episode("Redis stands still for 50 to 400 ms at a time, with 20 ms between", leases=2, whole=True),
    "blocked-redis": Episode(
        "a script keeps Redis for longer than a lease, until it answers BUSY", leases=2, whole=True
    ),
    "full-redis": Episode("Redis has no memory left (maxmemory), and then again", leases=2, whole=True),
    "clock-jump": Episode(
        "the clock of the Redis host jumps, by seconds and by hours, forward and back", leases=1, needs=Needs.CLOCK
    ),
    "lost-tail": Episode(
        "Redis is killed and comes back from an append-only file that lacks its last second or more",
        needs=Needs.LOG,
        whole=True,
        drained=True,
    ),
    "old-master": Episode(
        "host 2 is given the replica, promoted, while the old master goes on to serve host 1; then both follow the new",
        leases=2,
        drains=1,
        needs=Needs.PAIR,
        whole=True,
        drained=True,
    ),
    "sentinel": Episode(
        "the master is killed, replaced by order, or hangs and comes back; Sentinels promote its replica",
        leases=2,
        needs=Needs.SENTINELS,
        whole=True,
        drained=True,
    ),
    "silent-sentinels": Episode(
        "one, two or all Sentinels say nothing, while workers are killed and connections closed",
        leases=3,
        needs=Needs.SENTINELS,
    ),
    "silent-rq": Episode(
        "the Redis of RQ's keys says nothing, or is gone, while workers are killed", leases=3, needs=Needs.RQ
    ),
}


def planned(name: str, seed: int, count: int, duration_s: float, timing: Timing) -> list[Planned]:
    """So many episodes of one sort, evenly with jitter. ``detail`` is the number of the episode."""
    episode, chance = EPISODES[name], random.Random(f"episodes {name} {seed}")
    share_s = (duration_s - WARM_UP_S) / count
    slack_s = max(1.0, share_s - episode.takes_s(timing))
    return [
        Planned(
            WARM_UP_S + index * share_s + chance.uniform(0, slack_s),
            name,
            str(index),
            episode.lasts_s(timing, chance),
        )
        for index in range(count)
    ]


def fitting(name: str, duration_s: float, timing: Timing) -> int:
    """How many of them the duration has room for, at least one."""
    return max(1, int((duration_s - WARM_UP_S) / EPISODES[name].takes_s(timing)))
