"""What a key remembers, for people: what queued it, and its last turns. Nothing is decided by it.

The scripts write it as text (``scripts/lib/queue.lua``, ``scripts/lib/history.lua``); here the text is read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_N = "([0-9]{1,15})"
"""Longer ones none of ours has written, and Python refuses to read very long ones."""
_WHY = re.compile(f"{_N} (.*)", re.DOTALL)
_LOST = re.compile(rf"[ ,] ?lost [^ ,]+ {_N}(?:,|$)")
_TRIGGERS = re.compile(f"{_N} ([^,]*)(?:, (.*))?", re.DOTALL)
_FIRST = re.compile(rf"{_N}(?: {_N} x{_N})?((?: \S+)*)")
_TURN = re.compile(rf"(.*?) < (?:([a-z]+) )?{_N}(?:x{_N})? {_N}\+{_N} {_N}/(\S*) {_N} (.*)")


class Triggers(NamedTuple):
    """How many events queued a key while it waited, the first of them, and of the others the last in the most urgent
    lane. A turn that has ended keeps the first alone: the last is "".

    A trigger is "set RESOURCE/ID", "added RESOURCE/ID" or "del RESOURCE/ID" (the object was written, has come, or
    went), "observed RESOURCE/ID" or "status RESOURCE/ID" (it was written, and its status tells of its generation; the
    first is for its own key), "list RESOURCE" (its objects were listed anew), "read RESOURCE" (the cache has passed a
    write of its own), "due" (its time had come), "parked" (its time there is over), "resumed" (its pause has ended),
    "lost HOLDER MS" (a worker died or was cut off in its turn, for which it had claimed the key at MS), "asked" (by
    hand), "anew" (a supervisor of users' controllers has begun), "orphans" (an ingestor found some), or "QUEUE KEY" (a
    turn of that key woke it).
    """

    events: int
    first: str
    last: str = ""

    @classmethod
    def parse(cls, text: str) -> Triggers:
        """From "count first[, last]". What is no such text is one unknown trigger."""
        found = _TRIGGERS.fullmatch(text)
        if found is None:
            return cls(0, "unknown", "unknown")
        return cls(int(found[1]), found[2], found[3] or found[2])


class Queued(NamedTuple):
    """Why a key is queued, or was when it was claimed, and ms since when."""

    since_ms: int
    triggers: Triggers

    @classmethod
    def parse(cls, text: str) -> Queued | None:
        """From "since_ms count first[, last]"; None for any other text."""
        found = _WHY.fullmatch(text)
        return cls(int(found[1]), Triggers.parse(found[2])) if found is not None else None


def lost_ms(why: str) -> int | None:
    """When the claim began that was lost before this one, of the text that Queued is parsed from; None: none was."""
    found = _LOST.search(why)
    return int(found[1]) if found is not None else None


class PastTurn(NamedTuple):
    """A turn that has ended, or several alike in a row: when the last one ended; of one of the last ten, or of the last
    ten seconds, what it waited and took, the holder and the triggers.

    ``verdict``: "ok", "retry", "gone", or "lost" where its worker died or was cut off. ``did``: in words; "-" for
    nothing. ``waited_ms``: from the first trigger to the claim; ``took_ms``: from there to the end.
    """

    verdict: str
    did: str
    turns: int
    ended_ms: int
    waited_ms: int
    took_ms: int
    holder: str
    triggers: Triggers


def past_turns(newest: str, older: str, key: str) -> list[PastTurn]:
    """Of the two texts of a key, ``queue:turns`` and ``queue:history``, the newest first. Lines that are none of ours
    are left out.
    """
    return [*_turns(newest, key), *_turns(older, key)]


def _turns(text: str, key: str) -> list[PastTurn]:
    first, *lines = text.split("\n")
    head = _FIRST.fullmatch(first)
    if head is None:
        return []
    told_ms, more, found = int(head[1]), int(head[3] or 0), []
    ended_ms, names = int(head[2] or told_ms), dict(enumerate(head[4].split(), 1))
    for line in filter(None, map(_TURN.fullmatch, lines)):
        did, verdict, after_ms, turns, waited_ms, took_ms, name, part, events, trigger = line.groups()
        trigger = ("" if " " in trigger or "/" not in trigger else "set ") + trigger.replace("/%", f"/{key}", 1)
        found.append(
            PastTurn(
                verdict or "ok",
                did,
                int(turns or 1) + more,
                ended_ms,
                int(waited_ms),
                int(took_ms),
                names.get(int(name), "?") + part,
                Triggers(int(events), trigger),
            )
        )
        ended_ms, more = told_ms - int(after_ms), 0
        told_ms = ended_ms
    return found
