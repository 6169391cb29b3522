"""Pauses that people ask for: over all, a queue, a namespace or a key; and the rates and weights that they set."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import NamedTuple

SCOPES_MAX = 100
"""Of the scripts: so many may be paused at the same time."""
KEPT_BYTES_MAX = 2_000
"""A pause of more bytes is not kept in the Lease, so that all together always fit into an object of the API."""
ALL = "all"
NUMBER_MAX = 1_000_000.0
WEIGHT_MIN, WEIGHT_MAX = 0.1, 100.0
"""Of the scripts: no rate counts for more, no weight for less or more."""
_NUMBER = re.compile(r"[0-9]+\.?[0-9]*")
_ACT = re.compile(r"(\w+) ([^\n]*?): by=(\S+)(?: ([^\n]*))?")
_TEXT = re.compile(r"since_ms=([0-9]{1,15}) (?:until_ms=([0-9]{1,15}) )?(?:by=(\S+) ?)?(.*)", re.DOTALL)


class Pause(NamedTuple):
    """A scope whose turns do not begin, ms since when by Redis's clock, who asked for it, and why; with ``until_ms`` it
    ends by itself then. Of the scopes "rate QUEUE" and "rate namespace NAME" the turns begin no more often than the
    reason says: "rate=5 why". Those of "weight namespace NAME" and "weight queue QUEUE" say how large a share
    is: "weight=4 why".
    """

    scope: str
    since_ms: int
    by: str
    reason: str
    until_ms: int | None = None

    @classmethod
    def parse(cls, scope: str, text: str) -> Pause:
        """From "since_ms=.. until_ms=.. by=.. reason"; any other text is the reason."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return cls(scope, 0, "", text)
        return cls(scope, int(found[1]), found[3] or "", found[4], int(found[2]) if found[2] else None)

    @property
    def parked(self) -> str:
        """The task ("queue:key") that people have parked: a key whose pause has an end; "" for any other pause."""
        return self.scope.removeprefix("key ") if self.scope.startswith("key ") and self.until_ms is not None else ""

    @property
    def rate_per_s(self) -> float | None:
        """The rate that was set; None where this is no rate."""
        return self._number("rate")

    @property
    def weight(self) -> float | None:
        """The weight that was set; None where this is no weight."""
        return self._number("weight")

    def _number(self, word: str) -> float | None:
        number = self.reason.partition(" ")[0].removeprefix(f"{word}=")
        return float(number) if self.scope.startswith(f"{word} ") and _NUMBER.fullmatch(number) else None

    def covers(self, queue: str, key: str) -> bool:
        """Whether it keeps this key from a turn."""
        return self.scope in scopes_over(queue, key)


class Paused(NamedTuple):
    """All of them: scope -> text as stored; and the ``digest`` of those that the Lease has, too, "" for none."""

    texts: dict[str, str]
    kept: str


class Act(NamedTuple):
    """A line of the audit stream: what was done ("pause"), to what ("key replicaset:shop/a"), by whom and why."""

    verb: str
    scope: str
    by: str
    reason: str

    @classmethod
    def parse(cls, text: str) -> Act:
        """Of any other text the whole is the verb."""
        found = _ACT.fullmatch(text)
        return cls(found[1], found[2], found[3], found[4] or "") if found is not None else cls(text, "", "", "")

    @property
    def task(self) -> tuple[str, str] | None:
        """Queue and key, where it is about one key."""
        queue, colon, key = self.scope.removeprefix("key ").partition(":")
        return (queue, key) if colon and key and " " not in queue + key else None


def scopes_over(queue: str, key: str) -> tuple[str, ...]:
    """All the scopes that a key is in, the widest first."""
    namespace = key.rpartition("/")[0]
    return (ALL, f"queue {queue}", f"namespace {namespace}", f"key {queue}:{key}")


def limit_over(key: str) -> str:
    """The scope of the rate of a key's namespace."""
    return f"rate namespace {key.rpartition('/')[0]}"


def note(by: str, reason: str) -> str:
    """Who and why, as the scripts take it."""
    return f"by={'-'.join(by.split()) or 'unknown'} {' '.join(reason.split())}".rstrip()


def keepable(pauses: Mapping[str, str]) -> dict[str, str]:
    """Those that ``scripts/steer.lua`` can have written and takes again: whoever may write to Redis can put others
    there, and what the Lease has outlives Redis.
    """
    fit = {
        scope: text
        for scope, text in sorted(pauses.items())
        if "\n" not in scope + text and len(packed({scope: text})) <= KEPT_BYTES_MAX
    }
    return dict(list(fit.items())[:SCOPES_MAX])


def packed(pauses: Mapping[str, str]) -> str:
    """Pauses as stored, as one text; "" for none."""
    return json.dumps(dict(sorted(pauses.items())), separators=(",", ":")) if pauses else ""


def unpacked(text: str) -> dict[str, str]:
    """What ``packed`` made; anything else is none."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    whole = isinstance(found, dict) and all(isinstance(each, str) for each in found.values())
    return dict(found) if whole else {}


def digest(pauses: Mapping[str, str]) -> str:
    """What stands for them in Redis, once the Lease has them."""
    return hashlib.sha256(packed(pauses).encode()).hexdigest()[:16]
