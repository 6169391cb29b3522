"""Looks at a fleet, made up for tests: only what differs from a quiet fleet is named."""

from __future__ import annotations

from typing import Any

from oarlock.broker.looks.history import Triggers
from oarlock.cli.watch.fleet_look import (
    ApiCalls,
    FleetLook,
    KeyLook,
    NamespaceLook,
    QueueLook,
    ResourceLook,
    ShardLook,
    TroubleLook,
    WorkerLook,
)

QUEUE = "replicaset"
ASKED = Triggers(1, "asked", "asked")
WRITTEN = Triggers(3, "set pods/shop/web-1", "set pods/shop/web-2")


def shard(**facts: Any) -> ShardLook:
    usual: dict[str, Any] = {
        "shard": "0",
        "epoch": 7,
        "phase": "OPEN",
        "intact": True,
        "paused": "",
        "registered": 2,
        "idle": 1,
        "memory_bytes": 12_000_000,
        "memory_max_bytes": 0,
        "began": 100,
        "server": {"redis_version": "7.4.2", "role": "master"},
    }
    return ShardLook(**usual | facts)


def queue(**facts: Any) -> QueueLook:
    usual: dict[str, Any] = dict.fromkeys(("queued", "in_work", "delayed", "parked", "failing"), 0)
    return QueueLook(**{"shard": "0", "queue": QUEUE, **usual, "oldest_ms": None} | facts)


def look(**facts: Any) -> FleetLook:
    return FleetLook(**{"at_s": 10.0, "shards": (shard(),)} | facts)


def busy() -> FleetLook:
    """A fleet with something in every list."""
    return look(
        queues=(queue(queued=2, in_work=1, delayed=1, parked=1, failing=1, oldest_ms=4_000), queue(queue="daemonset")),
        resources=(ResourceLook("0", "pods", 40, 300), ResourceLook("0", "replicasets", 3, 1_200)),
        keys=(
            KeyLook("0", QUEUE, "shop/cart", "running", 5_000, None, WRITTEN),
            KeyLook("0", QUEUE, "shop/web", "queued", 4_000, None, ASKED),
            KeyLook("0", QUEUE, "batch/crunch", "queued", 2_000, None, None),
            KeyLook("0", QUEUE, "batch/later", "delayed", None, 60_000),
        ),
        workers=(
            WorkerLook("0", "w-1-1", "w-1", "working", QUEUE, "shop/cart", 700, 4_300, 3, WRITTEN),
            WorkerLook("0", "w-1-2", "w-1", "idle"),
        ),
        trouble=(
            TroubleLook("0", QUEUE, "shop/bad", "parked", 0, 2, 30_000),
            TroubleLook("0", QUEUE, "shop/sad", "failing", 12, 0, 9_000, "ValueError: no [bold]size", 800),
        ),
        namespaces=(NamespaceLook("shop", 3, 0.75, 3, QUEUE), NamespaceLook("batch", 1, 0.25, 1, QUEUE)),
        active=4,
        sampled=4,
        processes=2,
        api=(ApiCalls("127.0.0.1:9001", 50, 2), ApiCalls("127.0.0.1:9002", 10, 0)),
    )
