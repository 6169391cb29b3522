"""What the turns of a key announced and nobody has answered yet, as the expectation hash in Redis tells it.

client-go keeps expectations as counts, in the memory of one process. Here each names its write, so that whoever claims
the key next can send that very write again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class OpenWrite(NamedTuple):
    """A write that was announced and has no answer that proves anything. Times are of Redis's clock.

    ``since_ms``: when it was announced first; ``sent_ms``: when last; ``tries``: how often. ``over``: every request
    for it has landed by now or never will, so a look at the API tells what became of it.
    """

    since_ms: int = 0
    sent_ms: int = 0
    tries: int = 1
    over: bool = False

    @classmethod
    def parse(cls, value: str) -> OpenWrite:
        """From "pending since_ms=.. sent_ms=.. tries=.. [until_ms=.. | over] ..."; a bad number counts as absent."""
        facts = _facts(value)
        since_ms = _whole(facts.get("since_ms", ""))
        return cls(
            since_ms,
            _whole(facts.get("sent_ms", "")) or since_ms,
            _whole(facts.get("tries", "")) or 1,
            "over" in value.split(),
        )


NOT_OPEN = OpenWrite()


@dataclass(frozen=True, slots=True)
class ExpectedDelete:
    """An announced delete of ``target``, "resource/name": the uid and rv it means, and whether it was answered."""

    target: str
    uid: str
    rv: str
    answered: bool
    open: OpenWrite = NOT_OPEN

    @property
    def field(self) -> str:
        return f"delete {self.target}"


SCALE = "scale"
"""Verb of a change of an owner's size, which another controller acts on."""


class SizeEntry(NamedTuple):
    """A change of the spec of ``target``, "resource/name", which has the uid. ``rv``: what it was made from; empty once
    it has its answer. ``open``: None once it has.

    ``low``, ``high``: the smallest and largest size that the object had, has or may get until its status has observed
    the last one. So the entry outlives its answer.
    """

    target: str
    uid: str
    rv: str
    low: int
    high: int
    open: OpenWrite | None = None

    @property
    def field(self) -> str:
        return f"{SCALE} {self.target}"

    @property
    def hint(self) -> str:
        """The sizes, as an ``Entry`` announces them."""
        return f"low={self.low} high={self.high}"

    @property
    def answered_text(self) -> str:
        """What the entry says once it has its answer."""
        return f"answered uid={self.uid} {self.hint}"


REWRITTEN = "rewritten"
"""The field that counts statuses which a controller of one's own wrote though nothing else had changed."""


class Rewritten(NamedTuple):
    """``times``: how often in a row. ``rv``: of the object after the last time. ``inputs``: a digest of all else that
    the controller looked at. ``until_ms``: no turn before, by Redis's clock.
    """

    times: int = 0
    rv: str = ""
    inputs: str = ""
    until_ms: int = 0

    @classmethod
    def parse(cls, value: str) -> Rewritten:
        """A bad number counts as absent."""
        facts = _facts(value)
        times, until_ms = (_whole(facts.get(name, "")) for name in ("times", "until_ms"))
        return cls(times, facts.get("rv", ""), facts.get("inputs", ""), until_ms)

    @property
    def text(self) -> str:
        """As it is stored."""
        return f"times={self.times} rv={self.rv} inputs={self.inputs} until_ms={self.until_ms}"


UNDONE = "undone"
"""The field that names the object whose finalizer we removed, after its effects outside had been undone."""

BACK_OFF = "backoff"
"""Verb of a back-off of a node. Its text is stored as given; it is announced with the delete that causes it."""

REST = "rest"
"""Verb of the name of a failed pod that we delete, which is not to be used at once. Its text is stored as given."""

NOTES = (BACK_OFF, REST)
"""Verbs of entries that are no writes, and so never pending."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """The expectation hash of a key. Targets are "resource/name".

    ``creates``: those pending. ``reserved``: names that an earlier create may still take, and whether that time is
    over. ``blocked``: by name, the uid of a foreign object that has it. ``passed``: names passed over, and until when
    (Redis's clock). ``rests``: by name, "uid=.." of the failed pod or "until_ms=..". ``hints``: "node=.." of creates
    and reserved names. ``back_offs``: text by node. ``said``: the last answer to a write that proved nothing.
    ``rewritten``: None where no status was. ``undone``: the uid of the object whose finalizer was removed.
    """

    owner_uid: str
    creates: dict[str, OpenWrite] = field(default_factory=dict)
    deletes: tuple[ExpectedDelete, ...] = ()
    scales: tuple[SizeEntry, ...] = ()
    pending_others: tuple[tuple[str, str], ...] = ()
    reserved: dict[str, bool] = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=dict)
    rests: dict[str, str] = field(default_factory=dict)
    hints: dict[str, str] = field(default_factory=dict)
    back_offs: dict[str, str] = field(default_factory=dict)
    said: str = ""
    rewritten: Rewritten | None = None
    undone: str = ""

    @property
    def unanswered(self) -> int:
        """How many announced writes are without an answer."""
        deletes = sum(not each.answered for each in self.deletes)
        scales = sum(each.open is not None for each in self.scales)
        return len(self.creates) + len(self.pending_others) + deletes + scales

    @classmethod
    def parse(cls, fields: Sequence[bytes | str]) -> Expectations | None:
        """Read HGETALL's flat answer; None where the key has none."""
        if not fields:
            return None
        texts = [each.decode() if isinstance(each, bytes) else each for each in fields]
        read, deletes, scales, others = cls(""), [], [], []
        facts: dict[str, str] = {}
        texts_by_verb = {REST: read.rests, BACK_OFF: read.back_offs}
        for name, value in zip(texts[::2], texts[1::2], strict=True):
            verb, _, target = name.partition(" ")
            if verb in ("owner", "said", REWRITTEN, UNDONE):
                facts[verb] = value
            elif verb == "create":
                read.creates[target] = OpenWrite.parse(value)
                read.hints.update(_hints(target, value))
            elif verb == "delete":
                deletes.append(_delete(target, value))
            elif verb == SCALE:
                scales.append(_scale(target, value))
            elif verb == "reserved":
                read.reserved[target] = "over" in value.split()
                read.hints.update(_hints(target, value))
            elif verb == "blocked":
                read.blocked[target] = _facts(value).get("uid", "")
            elif verb == "passed":
                read.passed[target] = _whole(_facts(value).get("until_ms", ""))
            elif verb in texts_by_verb:
                texts_by_verb[verb][target] = value
            else:
                others.append((verb, target))
        return replace(
            read,
            owner_uid=facts.get("owner", ""),
            deletes=tuple(deletes),
            scales=tuple(scales),
            pending_others=tuple(others),
            said=facts.get("said", ""),
            rewritten=Rewritten.parse(facts[REWRITTEN]) if REWRITTEN in facts else None,
            undone=facts.get(UNDONE, ""),
        )


def _hints(target: str, value: str) -> list[tuple[str, str]]:
    return [(target, word) for word in value.split() if word.startswith("node=")]


def _delete(target: str, value: str) -> ExpectedDelete:
    facts, answered = _facts(value), not value.startswith("pending")
    opened = NOT_OPEN if answered else OpenWrite.parse(value)
    return ExpectedDelete(target, facts.get("uid", ""), facts.get("rv", ""), answered, opened)


def _scale(target: str, value: str) -> SizeEntry:
    facts = _facts(value)
    low, high = (_whole(facts.get(name, "")) for name in ("low", "high"))
    opened = OpenWrite.parse(value) if value.startswith("pending") else None
    return SizeEntry(target, facts.get("uid", ""), facts.get("rv", ""), low, high, opened)


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0


def _facts(value: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in value.split() if "=" in word)
