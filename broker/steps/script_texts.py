"""The Lua scripts as texts stamped with an epoch. Nothing here talks to Redis.

A script is ``scripts/<name>.lua``. The parts that its ``-- include:`` line names are put in front of it, without the
functions that it does not call. Stamping writes the epoch and the protocol version into the text itself, so its SHA
differs from epoch to epoch.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from oarlock.broker.keys import PROTOCOL

NAMES = (
    *("add", "add_after", "claim", "announce", "finish", "release", "reclaim", "renew", "due", "forget", "register"),
    *("ingest", "stage", "commit_list", "republish", "open", "pause", "steer", "drain", "acts", "report", "budget"),
    *("page", "look"),
)

REDIS_TIME = "local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)"
"""The clock of released scripts. Tests may stamp a clock of their own; a test asserts that this is the default."""

_INCLUDE = re.compile(r"^-- include: (.+)$", re.MULTILINE)
_COMMENTS = re.compile(r"^\s*--.*\n", re.MULTILINE)
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
        included = _included(self.source(name))
        return list(dict.fromkeys(each for part in included for each in (*self.parts_of(f"lib/{part}"), part)))

    def joined(self, name: str, *, with_comments: bool) -> str:
        """Prelude, parts and script in one text, its marks not yet stamped."""
        files = ("lib/prelude", *(f"lib/{part}" for part in self.parts_of(name)), name)
        return _joined(tuple(map(self.source, files)), with_comments)


@cache
def _included(text: str) -> Sequence[str]:
    return [part for line in _INCLUDE.findall(text) for part in line.split()]


@cache
def _joined(files: tuple[str, ...], with_comments: bool) -> str:
    texts = [files[0], *("\n" + text for text in files[1:])]
    pieces = [piece for text in texts for piece in _pieces(text, with_comments)]
    while len(called := _called(pieces)) < len(pieces):
        pieces = called
    return "".join(piece.text for piece in pieces)


class _Piece(NamedTuple):
    """A function at the margin, or what stands between two. ``names``: words in it; its own name only where it calls
    itself.
    """

    function: str
    text: str
    names: frozenset[str]


@cache
def _pieces(text: str, with_comments: bool) -> Sequence[_Piece]:
    """Of one file: many scripts have the same parts."""
    return list(_split(text if with_comments else _COMMENTS.sub("", text)))


def _split(text: str) -> Iterator[_Piece]:
    at = 0
    for found in _FUNCTION.finditer(text):
        yield _Piece("", text[at : found.start()], frozenset(_words(text[at : found.start()])))
        words = _words(found[0])
        words.remove(found[1])
        yield _Piece(found[1], found[0], frozenset(words))
        at = found.end()
    yield _Piece("", text[at:], frozenset(_words(text[at:])))


def _words(text: str) -> list[str]:
    return list(map(sys.intern, re.findall(r"\w+", text)))  # most are in many pieces


def _called(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Without the functions that nothing names. Lua makes all functions of a script anew each time it is run."""
    named = frozenset().union(*(piece.names for piece in pieces))
    return [piece for piece in pieces if not piece.function or piece.function in named]


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


def keep_all(epoch: int) -> None:
    """Put all scripts together now: processes that are forked from this one need not."""
    for name in NAMES:
        sha(name, epoch, REDIS_TIME)
