"""What an ingestor does about the epoch, decided from the Lease and from what Redis shows. Pure.

    Lease                      Redis                                   step
    none                       no epoch / one                          BOOTSTRAP without / with a drain
    another fleet's            any                                     REFUSE while it lives, else BOOTSTRAP
    newer protocol             any                                     REFUSE
    another number of shards   any                                     of shard 0: REFUSE if it is seen to be renewed,
                                                                       WAIT until it is gone, BOOTSTRAP;
                                                                       of others: BOOTSTRAP
    older protocol             any                                     BOOTSTRAP
    DRAIN, holder alive        the same epoch / else                   JOIN / WAIT (the holder itself: GO_ON)
    DRAIN, holder gone         the same epoch, open already / else     CONFIRM / BOOTSTRAP
    OPEN                       the same epoch and run, intact          JOIN; BOOTSTRAP if its scripts are gone
    OPEN                       same run, another epoch or none         BOOTSTRAP (flushed, or a holder came too late)
    OPEN                       another run, intact, not newer          WAIT while the Lease is renewed, else BOOTSTRAP
    OPEN                       another run, anything else              BOOTSTRAP if we know that the fleet's Redis lost
                                                                       its data; WAIT one TTL where we cannot know

The holder of a Lease in DRAIN is the ingestor that bootstraps its epoch. "Alive" and "renewed" mean that this process
saw the Lease change within the time named, on its own clock; the holder's wall clock only ever makes us more careful.
Every BOOTSTRAP is a compare-and-swap on the Lease that was looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from oarlock.broker.epoch import Seen, is_later
from oarlock.workers.epoch.fleet_lease import OPEN, FleetLease


class Move(StrEnum):
    """The steps."""

    JOIN = "join"  # the epoch in Redis is the fleet's
    BOOTSTRAP = "bootstrap"  # begin ``epoch``: swap the Lease, then Redis
    GO_ON = "go on"  # we are bootstrapping
    CONFIRM = "confirm"  # Redis is open: say so in the Lease for a bootstrapper that cannot any more
    WAIT = "wait"
    REFUSE = "refuse"  # this process must end


@dataclass(frozen=True, slots=True)
class Step:
    """``epoch`` and ``drain`` (whether writes of an earlier epoch may be in flight) are for BOOTSTRAP."""

    move: Move
    why: str
    epoch: int = 0
    drain: bool = True


@dataclass(frozen=True, slots=True)
class Me:
    """The deciding ingestor and what it remembers.

    ``known``: (epoch, run) it last worked in. ``refused``: an epoch it found unusable though all seemed well: its
    scripts are gone, or the API went back behind it. ``bootstrapping``: the epoch that it began. ``shard``: whose Lease
    it is.
    """

    name: str
    fleet: str
    protocol: int
    lease_ms: int
    known: tuple[int, str] | None = None
    refused: int = 0
    bootstrapping: int = 0
    shards: int = 1
    shard: str = "0"


@dataclass(frozen=True, slots=True)
class View:
    """What the ingestor sees. It reads the Lease before it looks at Redis.

    ``unchanged_ms``: for how long this process has seen the Lease unchanged; ``renewed``: whether it ever saw it
    change; ``age_ms``: our wall clock less the holder's when it wrote.
    """

    lease: FleetLease | None
    seen: Seen
    unchanged_ms: int
    renewed: bool
    age_ms: int


def next_step(view: View, me: Me) -> Step:
    """The one place that decides."""
    lease, seen = view.lease, view.seen
    known_epoch = me.known[0] if me.known is not None else 0
    counted = max(lease.epoch if lease is not None else 0, known_epoch)
    if lease is None or is_later(seen.epoch, counted):
        counted = max(counted, seen.epoch)
    new_epoch = counted + 1
    if lease is None:
        return Step(Move.BOOTSTRAP, "there is no Lease", new_epoch, drain=new_epoch > 1)
    gone_ms = 2 * me.lease_ms
    if lease.fleet != me.fleet:
        told = f"the Lease belongs to fleet {lease.fleet!r} (holder {lease.holder!r})"
        if view.renewed or abs(view.age_ms) < gone_ms:
            mend = f"this is fleet {me.fleet!r}: stop one of them; two fleets must not manage one cluster"
            return Step(Move.REFUSE, f"{told} and is alive; {mend}")
        if view.unchanged_ms < gone_ms:
            return Step(Move.WAIT, f"{told}: is it alive?")
        return Step(Move.BOOTSTRAP, f"{told}, which is gone", new_epoch)
    if lease.protocol > me.protocol:
        mend = f"this process speaks {me.protocol}: replace it"
        return Step(Move.REFUSE, f"the fleet has been upgraded to protocol {lease.protocol}; {mend}")
    if lease.shards != me.shards:
        return _of_another_division(lease, view, me, new_epoch)
    if lease.protocol < me.protocol:
        return Step(Move.BOOTSTRAP, f"protocol {lease.protocol} is replaced by {me.protocol}", new_epoch)
    if lease.phase == OPEN:
        return _while_open(lease, view, me, new_epoch)
    return _while_draining(lease, view, me, new_epoch)


def _of_another_division(lease: FleetLease, view: View, me: Me, new_epoch: int) -> Step:
    """The Lease names another number of shards. Only one division may work, and shard 0's Lease decides which.

    The coordinator of another shard carries out this step only if shard 0's Lease agrees with it (``shard_layout``).
    """
    told = f"the fleet is divided into {lease.shards}, this process into {me.shards}"
    if me.shard == "0":
        if view.renewed:
            mend = "give --shards as the others do, or stop all of their ingestors first (docs/shards.md)"
            return Step(Move.REFUSE, f"{told}, and it is alive: {mend}")
        if view.unchanged_ms < 2 * me.lease_ms:
            return Step(Move.WAIT, f"{told}: is it alive?")
    return Step(Move.BOOTSTRAP, f"{told}; that fleet is gone", new_epoch)


def _agree(lease: FleetLease, seen: Seen) -> bool:
    return seen.intact and (seen.epoch, seen.run) == (lease.epoch, lease.run)


def _while_draining(lease: FleetLease, view: View, me: Me, new_epoch: int) -> Step:
    agree = _agree(lease, view.seen) and me.refused != lease.epoch
    if lease.holder == me.name:
        if me.bootstrapping == lease.epoch:
            return Step(Move.GO_ON, "we are bootstrapping it")
        return Step(Move.BOOTSTRAP, "our own attempt came to nothing", new_epoch)
    if lease.holder and view.unchanged_ms < 2 * me.lease_ms:
        if agree:
            return Step(Move.JOIN, f"{lease.holder} is draining")
        return Step(Move.WAIT, f"{lease.holder} is bootstrapping epoch {lease.epoch}")
    if agree and view.seen.opened:
        return Step(Move.CONFIRM, "its bootstrapper is gone, but it is open")
    return Step(Move.BOOTSTRAP, f"the bootstrapper of epoch {lease.epoch} is gone", new_epoch)


def _while_open(lease: FleetLease, view: View, me: Me, new_epoch: int) -> Step:
    seen = view.seen
    if _agree(lease, seen):
        if me.refused == seen.epoch:
            return Step(Move.BOOTSTRAP, f"epoch {seen.epoch} cannot be used any more", new_epoch)
        if not seen.opened:
            return Step(Move.BOOTSTRAP, "the phase went back", new_epoch)
        return Step(Move.JOIN, "Lease and Redis agree")
    shows = f"Redis shows epoch {seen.epoch} of run {seen.run[:8]}, the Lease {lease.epoch} of {lease.run[:8]}"
    if seen.run == lease.run:
        return Step(Move.BOOTSTRAP, shows, new_epoch)
    if seen.intact and seen.epoch <= lease.epoch:
        if view.unchanged_ms < 2 * me.lease_ms:
            return Step(Move.WAIT, f"{shows}: the fleet may live on another Redis")
        return Step(Move.BOOTSTRAP, f"{shows}, which nobody renews", new_epoch)
    ours_lost = me.known == (lease.epoch, lease.run)
    lease_lost = seen.epoch > lease.epoch and me.known == (seen.epoch, seen.run)
    if ours_lost or lease_lost or view.unchanged_ms >= me.lease_ms:
        return Step(Move.BOOTSTRAP, shows, new_epoch)
    return Step(Move.WAIT, f"{shows}: does anybody still work there?")
