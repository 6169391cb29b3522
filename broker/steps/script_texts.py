"""The Lua scripts as texts stamped with an epoch. Nothing here talks to Redis.

A script is ``scripts/<name>.lua``. The parts that its ``-- include:`` line names are put in front of it, without the
functions that it does not call. Stamping writes the epoch and the protocol version into the text itself, so its SHA
differs from epoch to epoch.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from oarlock.broker.keys import PROTOCOL

NAMES = (
    *("add", "add_after", "claim", "announce", "finish", "release", "reclaim", "renew", "due", "forget", "register"),
    *("ingest", "stage", "commit_list", "republish", "open", "pause", "steer", "drain", "acts", "report", "budget"),
    *("page", "look"),
)

REDIS_TIME = "local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)"
"""The clock of released scripts. Tests may stamp a clock of their own; a test asserts that this is the default."""

_INCLUDE = re.compile(r"^-- include: (.+)$", re.MULTILINE)
_FUNCTION = re.compile(r"^local function (\w+)\((?:[^\n]*\bend(?: --[^\n]*)?$|.*?^end$)\n", re.MULTILINE | re.DOTALL)
"""At the margin; it ends on its own line, or with an "end" at the margin."""


class ScriptFolder:
    """Scripts and, in ``lib``, the parts they include."""

    def __init__(self, folder: Traversable) -> None:
        self._folder = folder
        self.source = cache(self.source)  # type: ignore[method-assign]

    def source(self, name: str) -> str:
        """The file as written. ``name`` is e.g. "claim" or "lib/queue"."""
        return (self._folder / f"{name}.lua").read_text()

    def parts_of(self, name: str) -> list[str]:
        """Names of the shared parts a script is put together from, dependencies first."""
        found: list[str] = []
        for line in _INCLUDE.findall(self.source(name)):
            for part in line.split():
                for each in (*self.parts_of(f"lib/{part}"), part):
                    if each not in found:
                        found.append(each)
        return found

    def joined(self, name: str, *, with_comments: bool) -> str:
        """Prelude, parts and script in one text, its marks not yet stamped."""
        parts = (self.source(f"lib/{part}") for part in self.parts_of(name))
        text = "\n".join([self.source("lib/prelude"), *parts, self.source(name)])
        return _called(text if with_comments else re.sub(r"(?m)^\s*--.*\n", "", text))


@lru_cache(64)
def _called(text: str) -> str:
    """Without the functions that nothing names. Lua makes all functions of a script anew each time it is run."""
    named = Counter(re.findall(r"\w+", text))
    kept = _FUNCTION.sub(lambda function: "" if named[function[1]] == 1 else function[0], text)
    return text if kept == text else _called(kept)


FOLDER = ScriptFolder(files("oarlock.broker") / "scripts")
source, parts_of = FOLDER.source, FOLDER.parts_of


def stamped(name: str, epoch: int, clock: str = REDIS_TIME) -> str:
    """The text Redis runs in this epoch."""
    text = FOLDER.joined(name, with_comments=clock != REDIS_TIME)
    return text.replace("@EPOCH@", str(epoch)).replace("@PROTOCOL@", str(PROTOCOL)).replace("@CLOCK@", clock)


@cache
def sha(name: str, epoch: int, clock: str = REDIS_TIME) -> str:
    """What EVALSHA takes."""
    return hashlib.sha1(stamped(name, epoch, clock).encode(), usedforsecurity=False).hexdigest()
