"""A worker's identity in the fleet: the name it holds keys under, who renews its leases, and the epoch it works in."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass, field

import redis

from oarlock.broker.connection.client import RunGuard, connect
from oarlock.broker.epoch import Seen
from oarlock.broker.redis_broker import RedisBroker
from oarlock.workers.counters.table import Row, own_row
from oarlock.workers.counters.turn_slots import TurnSlot
from oarlock.workers.process.settings import Settings

CALL_TIMEOUT_S = 4.0
WAIT_TIMEOUT_S = 3.0
"""Above the second that an idle worker waits in Redis, which ends a wait up to 0.1 s late."""
LEASE_TIMEOUT_S = 1.0
"""A supervisor must learn within its lease that Redis does not answer."""


@dataclass(frozen=True, slots=True)
class Identity:
    """``holder``: registered in the epoch ``seen``, never used before. ``slot``: shows its supervisor what it does.

    ``counts``: its row of the shared counters. ``queues``: those it takes keys of; empty: all that its fleet serves.
    """

    holder: str
    supervisor: str
    seen: Seen
    slot: TurnSlot
    counts: Row = field(default_factory=own_row)
    queues: tuple[str, ...] = ()


def new_supervisor_name() -> str:
    """``<host>-<nonce>``: no two supervisors, nor two lives of one, have the same."""
    return f"{socket.gethostname().split('.')[0]}-{secrets.token_hex(4)}"


def open_client(settings: Settings, seen: Seen, timeout_s: float) -> redis.Redis:
    """A client whose every connection proves first that it reaches the server of the epoch ``seen``."""
    guard = RunGuard()
    guard.expected = seen.run
    return connect(settings.redis_url, timeout_s=timeout_s, guard=guard, shard=settings.tag, tls=settings.redis_tls)


def open_broker(settings: Settings, seen: Seen) -> RedisBroker:
    """A worker's broker, with a connection of its own to wait on."""
    waiting = open_client(settings, seen, WAIT_TIMEOUT_S)
    client = open_client(settings, seen, CALL_TIMEOUT_S)
    return RedisBroker(client, seen.epoch, shard=settings.tag, blocking=waiting)
