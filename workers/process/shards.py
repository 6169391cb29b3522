"""Which shard of the fleet has a namespace.

A shard is a fleet of its own: epoch, Lease, watermarks, cache, queues and workers, all under the hash tag ``{shard}``.
It sees the objects of its namespaces and everything that has no namespace (nodes). Pure.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

SHARDS_MAX = 16
"""As many Leases as helm/oarlock/rbac/lease.yaml names. Each shard costs an ingestor a set of watches."""


@lru_cache(maxsize=65_536)
def shard_of(namespace: str, shards: int) -> str:
    """The shard of a namespace: the first eight bytes of its SHA-256, read as one number, modulo ``shards``.

    It must never change: two processes that answer differently would both work on the namespace.
    """
    return str(int.from_bytes(sha256(namespace.encode()).digest()[:8], "big") % shards)


def names(shards: int) -> tuple[str, ...]:
    """From "0" to "N-1"."""
    return tuple(str(index) for index in range(shards))


def has_key(key: str, shard: str, shards: int) -> bool:
    """Whether a shard works on the key ``namespace/name``. A key without namespace (of a node) is every shard's."""
    namespace, slash, _ = key.partition("/")
    return shards == 1 or not slash or shard_of(namespace, shards) == shard


def share(count: int, shard: int, shards: int) -> int:
    """How many of ``count`` workers serve a shard: worker i serves shard i modulo N."""
    return count // shards + (shard < count % shards)
