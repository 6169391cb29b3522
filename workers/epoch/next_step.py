"""What an ingestor does about the epoch, decided from the Lease and from what Redis shows. Pure.

    Lease                      Redis                                   step
    none                       no epoch / one                          MINT without / with a drain
    another fleet's            any                                     REFUSE while it lives, else MINT
    newer protocol             any                                     REFUSE
    another number of shards   any                                     of shard 0: REFUSE if it is seen to be renewed,
                                                                       WAIT until it is gone, MINT; of others: MINT
    older protocol             any                                     MINT
    DRAIN, minter alive        the same epoch / else                   JOIN / WAIT (the minter itself: GO_ON)
    DRAIN, minter gone         the same epoch, open already / else     CONFIRM / MINT
    OPEN                       the same epoch and run, intact          JOIN; MINT if its scripts are gone
    OPEN                       same run, another epoch or none         MINT (flushed, or a minter came too late)
    OPEN                       another run, intact, not newer          WAIT while the Lease is renewed, else MINT
    OPEN                       another run, anything else              MINT if we know that it is the fleet's Redis that
                                                                       lost its data; WAIT one TTL where we cannot know

"Alive" and "renewed" mean that the Lease was seen to change within the time named, on the clock of this process; the
holder's wall clock only ever makes us more careful. Every MINT is a compare-and-swap on the Lease that was looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from oarlock.broker.epoch import Seen, is_later
from oarlock.workers.epoch.fleet_lease import OPEN, FleetLease


class Move(StrEnum):
    """The steps."""

    JOIN = "join"  # the epoch in Redis is the fleet's
    MINT = "mint"  # begin ``epoch``: swap the Lease, then Redis
    GO_ON = "go on"  # we are minting
    CONFIRM = "confirm"  # Redis is open: say so in the Lease for a minter that cannot any more
    WAIT = "wait"
    REFUSE = "refuse"  # this process must end


@dataclass(frozen=True, slots=True)
class Step:
    """``epoch`` and ``drain`` (whether writes of an earlier epoch may be in flight) are for MINT."""

    move: Move
    why: str
    epoch: int = 0
    drain: bool = True


@dataclass(frozen=True, slots=True)
class Me:
    """Who decides, and what it remembers.

    ``known``: (epoch, run) it last worked in. ``refused``: an epoch it found unusable though all seemed well: its
    scripts are gone, or the API went back behind it. ``minting``: the epoch it is minting. ``shard``: whose Lease it
    is.
    """

    name: str
    fleet: str
    protocol: int
    lease_ms: int
    known: tuple[int, str] | None = None
    refused: int = 0
    minting: int = 0
    shards: int = 1
    shard: str = "0"


@dataclass(frozen=True, slots=True)
class View:
    """What it sees: the Lease, read before Redis was looked at.

    ``unchanged_ms``: for how long this process has seen the Lease as it is; ``renewed``: whether it saw it change;
    ``age_ms``: wall clock now, less the holder's when it wrote.
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
    mint_epoch = counted + 1
    if lease is None:
        return Step(Move.MINT, "there is no Lease", mint_epoch, drain=mint_epoch > 1)
    gone_ms = 2 * me.lease_ms
    if lease.fleet != me.fleet:
        told = f"the Lease belongs to fleet {lease.fleet!r} (holder {lease.holder!r})"
        if view.renewed or abs(view.age_ms) < gone_ms:
            mend = f"this is fleet {me.fleet!r}: stop one of them; two fleets must not manage one cluster"
            return Step(Move.REFUSE, f"{told} and is alive; {mend}")
        if view.unchanged_ms < gone_ms:
            return Step(Move.WAIT, f"{told}: is it alive?")
        return Step(Move.MINT, f"{told}, which is gone", mint_epoch)
    if lease.protocol > me.protocol:
        mend = f"this process speaks {me.protocol}: replace it"
        return Step(Move.REFUSE, f"the fleet has been upgraded to protocol {lease.protocol}; {mend}")
    if lease.shards != me.shards:
        return _of_another_division(lease, view, me, mint_epoch)
    if lease.protocol < me.protocol:
        return Step(Move.MINT, f"protocol {lease.protocol} is replaced by {me.protocol}", mint_epoch)
    if lease.phase == OPEN:
        return _while_open(lease, view, me, mint_epoch)
    return _while_draining(lease, view, me, mint_epoch)


def _of_another_division(lease: FleetLease, view: View, me: Me, mint_epoch: int) -> Step:
    """Only one division may be at work. Shard 0's Lease decides which; who looks at another has read that one."""
    told = f"the fleet is divided into {lease.shards}, this process into {me.shards}"
    if me.shard == "0":
        if view.renewed:
            mend = "give --shards as the others do, or stop all of their ingestors first (docs/shards.md)"
            return Step(Move.REFUSE, f"{told}, and it is alive: {mend}")
        if view.unchanged_ms < 2 * me.lease_ms:
            return Step(Move.WAIT, f"{told}: is it alive?")
    return Step(Move.MINT, f"{told}; that fleet is gone", mint_epoch)


def _agree(lease: FleetLease, seen: Seen) -> bool:
    return seen.intact and (seen.epoch, seen.run) == (lease.epoch, lease.run)


def _while_draining(lease: FleetLease, view: View, me: Me, mint_epoch: int) -> Step:
    agree = _agree(lease, view.seen) and me.refused != lease.epoch
    if lease.holder == me.name:
        if me.minting == lease.epoch:
            return Step(Move.GO_ON, "we are minting it")
        return Step(Move.MINT, "our own attempt came to nothing", mint_epoch)
    if lease.holder and view.unchanged_ms < 2 * me.lease_ms:
        if agree:
            return Step(Move.JOIN, f"{lease.holder} is draining")
        return Step(Move.WAIT, f"{lease.holder} is minting epoch {lease.epoch}")
    if agree and view.seen.opened:
        return Step(Move.CONFIRM, "its minter is gone, but it is open")
    return Step(Move.MINT, f"the minter of epoch {lease.epoch} is gone", mint_epoch)


def _while_open(lease: FleetLease, view: View, me: Me, mint_epoch: int) -> Step:
    seen = view.seen
    if _agree(lease, seen):
        if me.refused == seen.epoch:
            return Step(Move.MINT, f"epoch {seen.epoch} cannot be used any more", mint_epoch)
        if not seen.opened:
            return Step(Move.MINT, "the phase went back", mint_epoch)
        return Step(Move.JOIN, "Lease and Redis agree")
    shows = f"Redis shows epoch {seen.epoch} of run {seen.run[:8]}, the Lease {lease.epoch} of {lease.run[:8]}"
    if seen.run == lease.run:
        return Step(Move.MINT, shows, mint_epoch)
    if seen.intact and seen.epoch <= lease.epoch:
        if view.unchanged_ms < 2 * me.lease_ms:
            return Step(Move.WAIT, f"{shows}: the fleet may live on another Redis")
        return Step(Move.MINT, f"{shows}, which nobody renews", mint_epoch)
    ours_lost = me.known == (lease.epoch, lease.run)
    lease_lost = seen.epoch > lease.epoch and me.known == (seen.epoch, seen.run)
    if ours_lost or lease_lost or view.unchanged_ms >= me.lease_ms:
        return Step(Move.MINT, shows, mint_epoch)
    return Step(Move.WAIT, f"{shows}: does anybody still work there?")
