"""A worker that claims keys and ends their turns at once: prints when it claimed each of so many, unix ns by key."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.planted import EPOCH
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, ClaimLimits, LoadSpec
from oarlock.broker.values.turns import Finish, Verdict

QUEUE, HOLDER = "replicaset", "w-bench-0"
LIMITS = ClaimLimits(lease_ms=5_000, drain_ms=14_000, keys_max=8)
SILENT_S = 20.0


def claim(url: str, count: int) -> dict[str, int]:
    """Until so many different keys were claimed, or none came for long."""
    broker = RedisBroker(connect(url), EPOCH, blocking=connect(url))
    broker.register(HOLDER, "host", [QUEUE])
    print("ready", flush=True)
    claimed: dict[str, int] = {}
    last_s, number = time.monotonic(), 0
    while len(claimed) < count and time.monotonic() - last_s < SILENT_S:
        number += 1
        batch = broker.claim(HOLDER, f"n{number}", [LoadSpec(QUEUE, "replicasets")], LIMITS)
        if not isinstance(batch, Batch):
            broker.wait([QUEUE])
            continue
        last_s, now_ns = time.monotonic(), time.time_ns()
        for one in batch.claims:
            claimed.setdefault(one.key, now_ns)
        broker.finish([Finish(QUEUE, one.key, one.nonce, Verdict.OK) for one in batch.claims])
    return claimed


if __name__ == "__main__":
    print(json.dumps(claim(sys.argv[1], int(sys.argv[2]))), flush=True)
