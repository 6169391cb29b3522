"""The queue's Lua scripts as texts. Nothing here talks to Redis."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from oarlock.broker.steps.script_texts import REDIS_TIME, ScriptFolder

NAMES = ("add", "claim", "finish", "renew", "requeue", "look", "stats", "parked")

FOLDER = ScriptFolder(files("oarlock.queue") / "scripts")


@cache
def text(name: str, clock: str = REDIS_TIME) -> str:
    """What Redis runs. ``clock``: Lua that returns ms; tests may give one of their own."""
    return FOLDER.joined(name, with_comments=clock != REDIS_TIME).replace("@CLOCK@", clock)


@cache
def sha(name: str, clock: str = REDIS_TIME) -> str:
    """What EVALSHA takes."""
    return hashlib.sha1(text(name, clock).encode(), usedforsecurity=False).hexdigest()
