"""The Lua scripts as texts stamped with an epoch. Nothing here talks to Redis.

A script is ``scripts/<name>.lua``. The parts that its ``-- include:`` line names are put in front of it. Stamping
writes the epoch and the protocol version into the text itself, so its SHA differs from epoch to epoch.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files

from oarlock.broker.keys import PROTOCOL

NAMES = (
    *("add", "add_after", "claim", "announce", "finish", "release", "reclaim", "renew", "due", "forget", "register"),
    *("ingest", "stage", "commit_list", "republish", "open", "pause", "page", "look"),
)

REDIS_TIME = "local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)"
"""The clock of released scripts. Tests may stamp a clock of their own; a test asserts that this is the default."""

_FOLDER = files("oarlock.broker") / "scripts"
_INCLUDE = re.compile(r"^-- include: (.+)$", re.MULTILINE)


@cache
def source(name: str) -> str:
    """The file as written. ``name`` is e.g. "claim" or "lib/queue"."""
    return (_FOLDER / f"{name}.lua").read_text()


def parts_of(name: str) -> list[str]:
    """Names of the shared parts a script is put together from, dependencies first."""
    found: list[str] = []
    for line in _INCLUDE.findall(source(name)):
        for part in line.split():
            for each in (*parts_of(f"lib/{part}"), part):
                if each not in found:
                    found.append(each)
    return found


def stamped(name: str, epoch: int, clock: str = REDIS_TIME) -> str:
    """The text Redis runs in this epoch."""
    text = "\n".join([source("lib/prelude"), *(source(f"lib/{part}") for part in parts_of(name)), source(name)])
    text = re.sub(r"(?m)^\s*--.*\n", "", text) if clock == REDIS_TIME else text
    return text.replace("@EPOCH@", str(epoch)).replace("@PROTOCOL@", str(PROTOCOL)).replace("@CLOCK@", clock)


@cache
def sha(name: str, epoch: int, clock: str = REDIS_TIME) -> str:
    """What EVALSHA takes."""
    return hashlib.sha1(stamped(name, epoch, clock).encode(), usedforsecurity=False).hexdigest()
