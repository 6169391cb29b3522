"""What the broker hands out and takes: values only.

``Cached`` is an object as the ingestors stored it. ``Expectations`` are the writes announced for a key. ``Claim`` is a
key in a worker's hands: only its holder can announce writes for it and finish it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class EpochOver(Exception):
    """STALE, NOSCRIPT or another server: what we know may be of an earlier life. Stop writing, tell the supervisor."""


class DataDamaged(EpochOver):
    """What lies in Redis is not what our scripts put there. The epoch was ended, for all: a new one is to be begun."""


class ClaimLost(Exception):
    """The nonce is not the current one: somebody else may have the key. Write nothing more for it."""


class BrokerFull(Exception):
    """Redis is at its maxmemory and refused to grow; nothing was changed. Ends, renewals and releases still work."""


class BrokerUnreachable(Exception):
    """Redis did not answer. After a claim or a record: treat it as lost. After a finish: as finished."""


class BrokerBusy(BrokerUnreachable):
    """Redis is in a script that runs for too long: it says so and does nothing. What was asked was not done."""


class Cached(NamedTuple):
    """rv, uid and blob of a cached object; the blob is the reader's own encoding.

    ``signature``: a word that whoever wrote it may have put beside it; the broker keeps it and reads nothing in it.
    ``apart``: of the owner in a claim, what is kept beside the blob, once for all that have the same.
    """

    rv: str
    uid: str
    blob: bytes
    signature: str = ""
    apart: bytes = b""

    @classmethod
    def parse(cls, value: bytes) -> Cached:
        """From a value of the cache, "rv uid [signature]\\nindex entries\\nwake keys\\nblob"."""
        return cls.parse_all((value,))[0]

    @classmethod
    def parse_all(cls, values: Sequence[bytes]) -> list[Cached]:
        """Of many values. A claim may bring thousands, so none costs more than the three texts it is cut into."""
        found, make = [], tuple.__new__
        for value in values:
            head, _, _, blob = value.split(b"\n", 3)
            words = head.decode().split(" ", 2)
            found.append(make(cls, (words[0], words[1], blob, words[2] if len(words) == 3 else "", b"")))
        return found


class Delta(NamedTuple):
    """What changed in a mirror since the version that the claim named.

    ``version``: what to name next time; "" where the resource was never listed in this epoch: nothing is known, not
    even that there is nothing. ``full``: ``changed`` is all there is, whatever was known before. ``changed``: (id,
    object) of those that changed or came; ``gone``: ids of those that went, known before or not. The rv of an object
    is that of its last changed projection or later.
    """

    version: str
    full: bool = False
    changed: Sequence[tuple[str, Cached]] = ()
    gone: Sequence[str] = ()


class PageMark(NamedTuple):
    """Where the next page begins; of the generation that the pages before were read in."""

    generation: str
    place: str
    left: tuple[str, ...] = ()


class Page(NamedTuple):
    """Some of the objects under index entries, each once, and the watermark at which they were read.

    ``mark``: None after the last page. What is under an entry from the first page to the last is in one of them, and
    may be in two; each is as it stood when its own page was read.
    """

    watermark: str
    objects: list[Cached]
    mark: PageMark | None


class OpenWrite(NamedTuple):
    """What is known of a write that was announced and has no answer that proves anything. Times are of Redis's clock.

    ``since_ms``: when it was announced first; ``sent_ms``: when last; ``tries``: how often. ``over``: whatever was sent
    has landed by now or never will, so a look at the API settles it.
    """

    since_ms: int = 0
    sent_ms: int = 0
    tries: int = 1
    over: bool = False

    @classmethod
    def parse(cls, value: str) -> OpenWrite:
        """Of "pending since_ms=.. sent_ms=.. tries=.. [until_ms=.. | over] ..."; what is no number counts as absent."""
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
    """A delete announced: "resource/name", the uid and rv it means, and whether its answer is known."""

    target: str
    uid: str
    rv: str
    answered: bool
    open: OpenWrite = NOT_OPEN

    @property
    def field(self) -> str:
        return f"delete {self.target}"


BACK_OFF = "backoff"
"""Verb of an entry that is stored as given, by node: announced with the delete it follows from, and never pending."""

REST = "rest"
"""Verb of an entry that is stored as given: the name of a failed pod that we delete, not to be used at once."""

NOTES = (BACK_OFF, REST)
"""Verbs of entries that are no writes."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """The expectation hash of a key. Targets are "resource/name".

    ``creates``: pending ones. ``reserved``: names that a create sent earlier may still take, and whether that time is
    over. ``blocked``: uid of a foreign bearer by name. ``passed``: names passed over, and until when (Redis's clock).
    ``rests``: by name, "uid=.." of the failed pod or "until_ms=..". ``hints``: "node=.." of creates and reserved names.
    ``back_offs``: text by node. ``said``: the last answer to a write that proved nothing.
    """

    owner_uid: str
    creates: dict[str, OpenWrite] = field(default_factory=dict)
    deletes: tuple[ExpectedDelete, ...] = ()
    pending_others: tuple[tuple[str, str], ...] = ()
    reserved: dict[str, bool] = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=dict)
    rests: dict[str, str] = field(default_factory=dict)
    hints: dict[str, str] = field(default_factory=dict)
    back_offs: dict[str, str] = field(default_factory=dict)
    said: str = ""

    @property
    def unanswered(self) -> int:
        """How many announced writes have no answer."""
        return len(self.creates) + len(self.pending_others) + sum(not each.answered for each in self.deletes)

    @classmethod
    def parse(cls, fields: Sequence[bytes | str]) -> Expectations | None:
        """Read HGETALL's flat answer; None where there is no record."""
        if not fields:
            return None
        texts = [each.decode() if isinstance(each, bytes) else each for each in fields]
        read, deletes, others = cls(""), [], []
        facts: dict[str, str] = {}
        texts_by_verb = {REST: read.rests, BACK_OFF: read.back_offs}
        for name, value in zip(texts[::2], texts[1::2], strict=True):
            verb, _, target = name.partition(" ")
            if verb in ("owner", "said"):
                facts[verb] = value
            elif verb == "create":
                read.creates[target] = OpenWrite.parse(value)
                read.hints.update(_hints(target, value))
            elif verb == "delete":
                deletes.append(_delete(target, value))
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
            pending_others=tuple(others),
            said=facts.get("said", ""),
        )


def _hints(target: str, value: str) -> list[tuple[str, str]]:
    return [(target, word) for word in value.split() if word.startswith("node=")]


def _delete(target: str, value: str) -> ExpectedDelete:
    facts, answered = _facts(value), not value.startswith("pending")
    opened = NOT_OPEN if answered else OpenWrite.parse(value)
    return ExpectedDelete(target, facts.get("uid", ""), facts.get("rv", ""), answered, opened)


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0


def _facts(value: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in value.split() if "=" in word)


NO_OTHERS: Mapping[str, list[Cached]] = MappingProxyType({})


class ClaimLimits(NamedTuple):
    """How long a claim is good, and how much one call may bring.

    ``lease_ms``: the lease ends after it unless renewed. ``drain_ms``: D, how long a write that was sent before this
    claim may still land. ``bytes_max`` bounds owners and children; what changed in mirrors comes on top. One key is
    always taken.
    """

    lease_ms: int
    drain_ms: int
    keys_max: int = 8
    bytes_max: int = 262_144


class Claim(NamedTuple):
    """A key in our hands, and all that a turn over it reads."""

    queue: str
    key: str
    nonce: str
    owner: Cached | None
    children: list[Cached]
    """Of the resource that the LoadSpec's children name first."""
    expectations: Expectations | None
    min_rv: str
    """resource=rv of own writes the cache has not passed yet; "" when all are read."""
    unsettled: bool
    """Writes were announced and not all answered, by whatever holder; without a record this asks for a live list."""
    crashes: int
    others: Mapping[str, list[Cached]] = NO_OTHERS
    """Children of the further resources that the LoadSpec names, each of them present."""
    now_ms: int = 0
    """Redis's clock at the claim: for times that the record names."""
    refusal: str = ""
    """Why what was read is not to be believed; said by whoever checked it, never by the broker. Then no turn begins."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """resourceVersion a resource's cache equals, and ms since that was last confirmed."""

    rv: str
    age_ms: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The claims of one call, all of one queue; ``watermarks`` of every resource that its LoadSpec names."""

    queue: str
    claims: list[Claim]
    watermarks: dict[str, Watermark]
    mirrors: dict[str, Delta] = field(default_factory=dict)
    waited_ms: Sequence[int] = field(default=(), compare=False)
    """How long each key was queued, by Redis's clock; empty from the twin in memory, which does not measure it."""


class Idle(StrEnum):
    """Why a claim call brought nothing."""

    EMPTY = "EMPTY"  # no key is queued: wait for a wake-up
    WAIT = "WAIT"  # the epoch is draining: wait and ask again
    UNKNOWN = "UNKNOWN"  # not registered (any more): register, or exit


class Verdict(StrEnum):
    """How a turn ended, for the queue."""

    OK = "ok"  # its back-off is forgotten
    RETRY = "retry"  # again, rate limited
    GONE = "gone"  # the owner is no more: drop its record too


class Change(NamedTuple):
    """A change to the record at finish: drop a field, set it, raise what the cache has to pass, or "settled"; or
    "again", a look at the key that no verdict puts off.
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
        """The turn acted on a live list: announcements whose record was lost no longer matter."""
        return cls("settled", "")

    @classmethod
    def again(cls, delay_ms: int) -> Change:
        """Look again after ``delay_ms``, though the verdict may ask for a longer pause."""
        return cls("again", "", str(delay_ms))


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of one turn. ``delay_ms``: look again after it (the earlier time wins); for RETRY the least wait."""

    queue: str
    key: str
    nonce: str
    verdict: Verdict
    delay_ms: int | None = None
    changes: tuple[Change, ...] = ()


class Entry(NamedTuple):
    """A write to be announced: verb, "resource/name", and for deletes the uid and rv meant.

    ``hint``: for a create, a word kept beside it and its name ("node=n1"). With a verb of ``NOTES`` it is all that is
    stored; of ``BACK_OFF`` the ``target`` is a bare node name.
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
        return f"uid={self.uid} rv={self.rv}" if self.uid else self.hint


class NameTaken(NamedTuple):
    """A name about to be used that a cached object bears already. Nothing was recorded."""

    target: str
    object: Cached


class Event(NamedTuple):
    """One change of a cached object. ``blob`` None: deleted. ``entries``: index entries. ``wakes``: "queue:key".

    ``signature``: a word to be kept beside it. A change of this alone, as of the rv alone, is no change of the object.
    ``apart``: name and bytes of what belongs to it and is kept once for all objects that name it.
    """

    id: str
    rv: str
    uid: str
    blob: bytes | None
    entries: tuple[str, ...] = ()
    wakes: tuple[str, ...] = ()
    signature: str = ""
    apart: tuple[str, bytes] | None = None

    @property
    def size(self) -> int:
        """Bytes that it brings."""
        return len(self.blob or b"") + (len(self.apart[1]) if self.apart else 0)

    @property
    def words(self) -> str:
        """Index entries and wake keys as the scripts take them. Whoever has something apart is indexed under it."""
        entries = (*self.entries, f"apart={self.apart[0]}") if self.apart else self.entries
        return " ".join(entries) + "\n" + " ".join(self.wakes)

    @property
    def uid_and_signature(self) -> str:
        """As the scripts take it."""
        return f"{self.uid} {self.signature}" if self.signature else self.uid


class Ingested(NamedTuple):
    """Outcome of a batch: "OK", "GAP" (watch again from ``watermark``) or "NEEDLIST"."""

    verdict: str
    watermark: str = ""
    added: int = 0
    skipped: int = 0


class LoadSpec(NamedTuple):
    """What a claim hands over: the owners' resource, children, and what changed in resources kept in memory.

    ``children``: (resource, index, word), the objects under the entry "index=value", where the word says which value:
    "uid" of the owner, "name" of the key after its namespace, if it has one, or "wanted": those that the owner's own
    entries name. Only those of "name" are read where there is no owner object. ``mirrors``: (resource, version known,
    "" for none).

    What is wanted: an owner's entry "?value" is no index entry but a place to look at; of several the one with the
    fewest objects is chosen. "?a|b" is two places together; "+value" is looked at on top. All that is under a value
    "namespace/..." has to be under "namespace" as well, of the owner's key: where nothing is, nothing more is asked.
    """

    queue: str
    owners: str
    children: tuple[tuple[str, str, str], ...] = ()
    mirrors: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        words = [self.queue, self.owners, *("/".join(child) for child in self.children)]
        if self.mirrors:
            words += (f"{resource}/{version or '-'}/mirror" for resource, version in self.mirrors)
        return " ".join(words)

    @property
    def resources(self) -> tuple[str, ...]:
        """Of the children, each once, in the order in which they are first named."""
        return tuple(dict.fromkeys(child[0] for child in self.children))
