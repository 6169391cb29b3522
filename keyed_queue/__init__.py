"""A keyed work queue on Redis for plain RQ users: one run a key at a time, and again if it was added meanwhile.

It needs no Kubernetes. ``docs/keyed-queue.md`` is its page.
"""

from oarlock.queue.context import Again, Context
from oarlock.queue.keyed import KeyedQueue
from oarlock.queue.values import KeyFacts, NotAQueue, Parked, QueueFull, QueueUnreachable, Stats
from oarlock.queue.worker import Worker

__all__ = [
    "Again",
    "Context",
    "KeyFacts",
    "KeyedQueue",
    "NotAQueue",
    "Parked",
    "QueueFull",
    "QueueUnreachable",
    "Stats",
    "Worker",
]
