"""Every Redis key of a keyed queue, spelled once.

All keys of a queue share the prefix ``oarlock:queue:{name}:`` and its hash tag, so each script runs in one slot of a
Redis Cluster. The fleet's own keys have a number or a tag where these have ``queue``, and RQ's begin with ``rq:``: all
three may share a Redis. There is no epoch: the data are as durable as the Redis they are in.
"""

from __future__ import annotations

import re

from oarlock.broker.keys import KeySpec


def base(name: str) -> str:
    """Prefix of every key of the queue ``name``."""
    return f"oarlock:queue:{{{name}}}:"


NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
"""What a queue may be called: nothing that would end its hash tag."""

TABLE: tuple[KeySpec, ...] = (
    KeySpec("state", "hash", "until idle", "key -> queued | running | running+ | parked; absent is idle"),
    KeySpec("stream:<group>", "stream", "until empty", "the queued keys of a group: one entry a key"),
    KeySpec("ring", "list", "until empty", "groups with queued keys, in the order of their turns"),
    KeySpec("groups", "hash", "until idle", "key -> its group; absent: the group without a name"),
    KeySpec("delayed", "zset", "until due", "key -> ms when it is to be queued"),
    KeySpec("locks", "hash", "until finished", "key -> token, holder, since when, ms of lease, whether begun anew"),
    KeySpec("leases", "zset", "until finished", "key -> ms when its lock ends unless renewed"),
    KeySpec("failures", "hash", "until a good run", "key -> failed runs in a row"),
    KeySpec("errors", "hash", "until a good run", "key -> traceback of the last failed run, at most 8,000 characters"),
    KeySpec("parked", "zset", "until requeued", "key that failed too often -> ms since when"),
    KeySpec("token", "string", "for ever", "the last fencing token"),
    KeySpec("tick", "string", "for ever", "ms of the last call of a consumer: shows a clock that jumps"),
    KeySpec("consumers", "zset", "60 s, renewed", "consumer -> ms of its last call"),
    KeySpec("waiters", "zset", "1.5 s, renewed", "idle consumer -> ms until which it waits"),
    KeySpec("wake", "list", "until taken", "a token for each idle consumer that may go"),
)
