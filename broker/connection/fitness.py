"""Whether a server may carry the fleet's data: asked once, when a process starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import redis

from oarlock.broker.connection import server_facts
from oarlock.broker.connection.redis_url import Kind, RedisUrl

LEAST = (7, 0)
"""On 6.2 scripts survive a failover and a restart from a file, so one of the signs of a lost epoch is missing."""
LEAST_ALONE = (6, 2, 5)
"""The oldest that was tested. It will do without a replica and an append-only file: then no such restart can happen."""

Version = tuple[int, ...]

FIXED: Final[Mapping[str, tuple[Version, ...]]] = {
    "Redis": ((6, 2, 20), (7, 2, 11), (7, 4, 6), (8, 0, 4), (8, 2, 2)),
    "Valkey": ((7, 2, 11), (8, 0, 6), (8, 1, 4)),
}
"""The first release of each line with the fix of CVE-2025-49844. Newer lines had it from the start; others have none.

docs/redis.md has the same table; a test compares the two.
"""


class UnfitServer(Exception):
    """The server may not carry the fleet's data; the text is one line with the mend."""


def check(client: redis.Redis, url: RedisUrl, *, embedded: bool = False) -> None:
    """Refuse a server that is not what ``url`` says, is too old, does not take writes or cannot be told from another.

    ``embedded``: it is the one that oarlock started, whatever it says. Raises UnfitServer and RedisError.
    """
    told = server_facts.ask(client, "server", "replication", "persistence")
    _right_kind(_mode(told), url)
    if told.get("role", "master") != "master":
        where = f"{told.get('master_host')}:{told.get('master_port')}"
        raise UnfitServer(
            f"it is a read-only replica of {where}: give the URL of the master,"
            " or redis+sentinel://user:password@sentinel:26379/mymaster/0 to follow it"
        )
    _new_enough(told, embedded)
    if not server_facts.life(told):
        raise UnfitServer("its INFO gives no run_id, so that a restart could not be noticed: use another Redis")


def check_for_data(client: redis.Redis, url: RedisUrl, *, embedded: bool = False) -> None:
    """The same, and refuse a server that may evict keys, for it would lose data without a word.

    Raises UnfitServer and RedisError.
    """
    check(client, url, embedded=embedded)
    policy = server_facts.ask(client, "memory").get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise UnfitServer(f"maxmemory-policy is {policy}: it would drop records; set it to noeviction")


def doubt(client: redis.Redis) -> str:
    """What a person should know of this server though it can be used; "" for nothing. Raises RedisError."""
    told = server_facts.ask(client, "server", "replication")
    replicated = _mode(told) != "cluster" and told.get("connected_slaves", "0") != "0"
    if not replicated or "min_slaves_good_slaves" in told:
        return ""
    return (
        "it has replicas, but min-replicas-to-write and min-replicas-max-lag are not set:"
        " a master that is cut off goes on taking writes (docs/redis.md)"
    )


def _mode(told: Mapping[str, str]) -> str:
    """standalone, sentinel or cluster; Valkey has another word for it."""
    return told.get("redis_mode") or told.get("server_mode", "standalone")


def _right_kind(mode: str, url: RedisUrl) -> None:
    if mode == "sentinel":
        raise UnfitServer("it is a Sentinel: write redis+sentinel://user:password@host:26379/mymaster/0")
    if mode == "cluster" and url.kind is not Kind.CLUSTER:
        raise UnfitServer("it is a node of a cluster: write redis+cluster://user:password@host:6379/")
    if mode != "cluster" and url.kind is Kind.CLUSTER:
        raise UnfitServer("it is not a node of a cluster: write redis:// in place of redis+cluster://")


def _new_enough(told: Mapping[str, str], embedded: bool) -> None:
    said = told.get("redis_version", "0")
    version = _version(said)
    alone = told.get("connected_slaves", "0") == "0" and told.get("aof_enabled", "0") == "0"
    if version >= LEAST or (version >= LEAST_ALONE and (embedded or alone) and _mode(told) == "standalone"):
        return
    raise UnfitServer(
        f"Redis {said} is too old: oarlock needs {_dotted(LEAST)} or newer"
        f" ({_dotted(LEAST_ALONE)} will do without replicas, append-only file and cluster)"
    )


def _version(said: str) -> Version:
    return tuple(int(part) for part in said.split(".") if part.isdecimal())


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


def patch_hint(told: Mapping[str, str]) -> str:
    """What a person should look up of a version without the fix of CVE-2025-49844; "" for one with it.

    By it, a script of anybody who may run EVAL can take over the server. Distributions put the fix into older versions
    and keep their numbers, so this is only a hint. ``told``: the server section of INFO.
    """
    name = "Valkey" if "valkey_version" in told else "Redis"
    said = told.get(f"{name.lower()}_version", "")
    version = _version(said)
    if not version or _has_fix(name, version):
        return ""
    return (
        f"{name} {said} is older than the fix of CVE-2025-49844, unless your distribution has put it into this version:"
        " look at its changelog (docs/redis.md, patch levels)"
    )


def _has_fix(name: str, version: Version) -> bool:
    """Whether upstream's release of this version has it."""
    fixed = FIXED[name]
    line = next((each for each in fixed if each[:2] == version[:2]), None)
    return version >= line if line is not None else version[:2] > fixed[-1][:2]
