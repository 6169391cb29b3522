"""What a turn tells the broker: the writes that it announces, and its end."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from oarlock.broker.values.objects import Cached


class Entry(NamedTuple):
    """A write to be announced: verb, "resource/name", and for a delete or a scale the uid and rv that it means.

    ``hint``: for a create, a word that is kept beside it and beside its reserved name ("node=n1"); for a scale, the
    sizes ("low=0 high=3"). With a verb of ``expectations.NOTES``, the text to store; with ``BACK_OFF``, ``target`` is
    the name of a node.
    """

    verb: str
    target: str
    uid: str = ""
    rv: str = ""
    hint: str = ""

    @property
    def field(self) -> str:
        return f"{self.verb} {self.target}"

    @property
    def detail(self) -> str:
        if not self.uid:
            return self.hint
        return f"uid={self.uid} rv={self.rv} {self.hint}".rstrip()


class NameTaken(NamedTuple):
    """A cached object already has the name of a new create, so nothing was announced."""

    target: str
    object: Cached


class Verdict(StrEnum):
    """How a turn ended, for the queue."""

    OK = "ok"  # its back-off is forgotten
    RETRY = "retry"  # again, rate limited
    GONE = "gone"  # the owner is gone: drop its expectations too


OK, RETRY = Verdict.OK, Verdict.RETRY
"""For what every turn does: to read a member of the class takes ten times as long as to read a name."""


class Change(NamedTuple):
    """A change at finish: "drop" or "set" a field of the expectations, raise the revision that the cache has to pass
    ("need"), "settled", or "again".
    """

    op: str
    name: str
    value: str = ""

    @classmethod
    def drop(cls, field_name: str) -> Change:
        return cls("drop", field_name)

    @classmethod
    def set(cls, field_name: str, value: str) -> Change:
        return cls("set", field_name, value)

    @classmethod
    def min_rv(cls, resource: str, rv: str) -> Change:
        return cls("need", resource, rv)

    @classmethod
    def settled(cls) -> Change:
        """The turn acted on a live list, so announcements whose expectations were lost no longer matter."""
        return cls("settled", "")

    @classmethod
    def again(cls, delay_ms: int) -> Change:
        """Look at the key again after ``delay_ms``, even if the verdict asks for a longer pause."""
        return cls("again", "", str(delay_ms))


class Finish(NamedTuple):
    """The end of one turn. ``delay_ms``: look again after it (the earlier time wins); with RETRY, the shortest wait.

    ``did``: what it did, in a line for people.
    """

    queue: str
    key: str
    nonce: str
    verdict: Verdict
    delay_ms: int | None = None
    changes: tuple[Change, ...] = ()
    did: str = ""
