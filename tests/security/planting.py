"""Hostile values for every kind of key, made from the table of keys: a new one gets its own without being asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis

from oarlock.broker import keys
from oarlock.broker.keys import KeySpec

HUGE = 1_000_000
BINARY = b"\xff\xfe\x00 \n="
Plant = Callable[[redis.Redis, str], object]

KINDS = ("another type", "binary", "numbers", "huge")


def _every_field(value: bytes | str, *more: str) -> Plant:
    def plant(admin: redis.Redis, name: str) -> object:
        fields: list[Any] = [*admin.hkeys(name)][:3]  # type: ignore[misc]
        return admin.hset(name, mapping=dict.fromkeys([*fields, *more], value))

    return plant


def _scores(admin: redis.Redis, name: str) -> object:
    members: dict[Any, float] = {each: float("inf") for each in admin.zrange(name, 0, -1)}
    return admin.zadd(name, members | {"replicaset:default/ghost": float("inf"), "default/ghost": -1e308, "-1": -1})


def _entries(value: bytes | str) -> Plant:
    def plant(admin: redis.Redis, name: str) -> object:
        admin.xadd(name, {"no": "such"})
        return admin.xadd(name, {"key": value})

    return plant


def _value(value: bytes | str) -> Plant:
    return lambda admin, name: admin.set(name, value)


def _member(value: bytes | str) -> Plant:
    return lambda admin, name: admin.sadd(name, value)


def _pushed(value: bytes | str) -> Plant:
    return lambda admin, name: admin.lpush(name, value)


def _scored(value: bytes | str) -> Plant:
    return lambda admin, name: admin.zadd(name, {value: 1})


_OF_TYPE: dict[str, dict[str, Plant]] = {
    "string": {"binary": _value(BINARY), "numbers": _value("-1e400"), "huge": _value("9" * HUGE)},
    "hash": {
        "binary": _every_field(BINARY, "default/web", "replicasets", BINARY.decode("latin-1")),
        "numbers": _every_field("-1e400", "default/web", "replicasets", "seq"),
        "huge": _every_field("x" * HUGE, "default/web", "replicasets"),
    },
    "set": {"binary": _member(BINARY), "numbers": _member("-1"), "huge": _member("x" * HUGE)},
    "zset": {"binary": _scored(BINARY), "numbers": _scores, "huge": _scored("x" * HUGE)},
    "list": {"binary": _pushed(BINARY), "numbers": _pushed("-1"), "huge": _pushed("x" * HUGE)},
    "stream": {"binary": _entries(BINARY), "numbers": _entries("-1"), "huge": _entries("x" * HUGE)},
}


def plant(spec: KeySpec, kind: str, admin: redis.Redis, name: str) -> None:
    """Put a hostile value of this kind there."""
    if kind == "another type":
        admin.delete(name)
        admin.rpush(name, "x") if spec.type != "list" else admin.set(name, "x")
    else:
        _OF_TYPE[spec.type][kind](admin, name)


def take_away(spec: KeySpec, kind: str, admin: redis.Redis, name: str) -> None:
    """What a person would: what was planted goes, or all of it where nothing else is left of what was there."""
    if kind == "another type" or spec.type == "string":
        admin.delete(name)
    elif spec.type == "hash":
        admin.hdel(name, "default/web", "replicasets", "seq", BINARY.decode("latin-1"))
    elif spec.type == "set":
        admin.srem(name, BINARY, "-1", "x" * HUGE)
    elif spec.type == "zset":
        admin.zrem(name, BINARY, "replicaset:default/ghost", "default/ghost", "-1", "x" * HUGE)
    elif spec.type == "list":
        for value in (BINARY, "-1", "x" * HUGE):
            admin.lrem(name, 0, value)  # type: ignore[arg-type]


def name_of(pattern: str, base: str, words: dict[str, str]) -> str:
    """The key of a line of the table, with these words in the place of its variables."""
    for word, value in words.items():
        pattern = pattern.replace(f"<{word}>", value)
    assert "<" not in pattern, f"{pattern}: say here what stands for it"
    return base + pattern


EPOCH = KeySpec("epoch", "string", "", "")
SPECS = (EPOCH, *keys.TABLE)
