"""What the broker hands out and takes: values only.

``Cached`` is an object as the ingestors stored it. ``Claim`` is a key in a worker's hands: only its holder can announce
writes for it and finish it.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple

from oarlock.broker.expectations import Expectations


class EpochOver(Exception):
    """STALE, NOSCRIPT or another server: our data may be of an earlier epoch. Stop writing, tell the supervisor."""


class DataDamaged(EpochOver):
    """Redis holds data that our scripts did not write. The epoch was ended for all, and a new one is to be begun."""


class ClaimLost(Exception):
    """The nonce is not the current one: somebody else may have the key. Write nothing more for it."""


class BrokerFull(Exception):
    """Redis is at its maxmemory and refused to grow; nothing was changed. Ends, renewals and releases still work."""


class BrokerUnreachable(Exception):
    """Redis did not answer. After a claim or an announcement: treat it as lost. After a finish: as finished."""


class BrokerBusy(BrokerUnreachable):
    """Redis is busy with a script that runs for too long. It did not do what was asked."""


class Cached(NamedTuple):
    """rv, uid and blob of a cached object; the blob is the reader's own encoding.

    ``signature``: a word that the writer may put beside it; the broker keeps it and does not read it. ``apart``: for
    the owner in a claim, the part that is stored once for all owners that share it; b"" where the claim has counts.
    """

    rv: str
    uid: str
    blob: bytes
    signature: str = ""
    apart: bytes = b""

    @classmethod
    def parse(cls, value: bytes, apart: bytes = b"") -> Cached:
        """From a value of the cache, "rv uid [signature]\\nindex entries\\nwake keys\\nblob"."""
        head, _, _, blob = value.split(b"\n", 3)
        words = head.decode().split(" ", 2)
        return tuple.__new__(cls, (words[0], words[1], blob, words[2] if len(words) == 3 else "", apart))

    @classmethod
    def parse_all(
        cls, values: Sequence[bytes], ending_of: Callable[[bytes], bytes | None] | None = None
    ) -> list[Cached]:
        """As ``parse``, for many. A claim may bring thousands, so each costs no more than the texts it is cut into.

        ``ending_of``: by index entries, what ends the blobs before their uids and was left out of them.
        """
        found, make = [], tuple.__new__
        for value in values:
            head, entries, _, blob = value.split(b"\n", 3)
            words = head.decode().split(" ", 2)
            if ending_of is not None and (ending := ending_of(entries)) is not None:
                blob = b"".join((blob, ending, words[1].encode()))
            found.append(make(cls, (words[0], words[1], blob, words[2] if len(words) == 3 else "", b"")))
        return found


class Delta(NamedTuple):
    """What changed in a resource that workers keep in memory, since the version that the claim named.

    ``version``: the one to name next time; "" where the resource was never listed in this epoch, so that nothing is
    known of it. ``full``: ``changed`` is all there is, whatever was known before. ``changed``: id and object of each
    that changed or came. ``gone``: ids of those that went, known before or not. The rv of an object is that of its
    last changed projection, or a later one. ``unread``: ``load`` brings all there is.
    """

    version: str
    full: bool = False
    changed: Sequence[tuple[str, Cached]] = ()
    gone: Sequence[str] = ()
    unread: bool = False


class PageMark(NamedTuple):
    """Where the next page begins, in the generation that the earlier pages were read from."""

    generation: str
    place: str
    left: tuple[str, ...] = ()


class PageLimits(NamedTuple):
    """About how many objects, and how many bytes of them, a page brings. It always brings some."""

    count_max: int = 500
    bytes_max: int = 262_144


PAGE = PageLimits()
"""A page that does not hold up Redis for long."""


class Page(NamedTuple):
    """Some of the objects under index entries, each once, and the watermark at which they were read.

    ``mark``: None after the last page. An object that is under an entry from the first page to the last is in one of
    them, or in two. Each page shows its objects as they were when it was read.
    """

    watermark: str
    objects: list[Cached]
    mark: PageMark | None


NO_OTHERS: Mapping[str, list[Cached]] = MappingProxyType({})
NO_COUNTS: Mapping[bytes, int] = MappingProxyType({})


class Unloaded(NamedTuple):
    """Children that a claim leaves to ``load``: the ids of the objects of a resource that were under an index entry."""

    resource: str
    generation: str
    entry: str
    ids: Sequence[bytes]


class ClaimLimits(NamedTuple):
    """How long a claim is good, and how much one call may bring.

    ``lease_ms``: the lease ends after it unless renewed. ``drain_ms``: D, how long a write that was sent before this
    claim may still land. ``bytes_max`` bounds owners and children; changes of local caches come on top. One key is
    always taken. ``beside``: the holder has turns under way, so no key that crashed a worker is brought, and none of
    these namespaces; None: it has none. ``load_min``: from so many children on, and of more than 1,000 objects of a
    local cache, all are left to ``load``; 0: none are.
    """

    lease_ms: int
    drain_ms: int
    keys_max: int = 8
    bytes_max: int = 262_144
    beside: Collection[str] | None = None
    load_min: int = 0

    @property
    def beside_text(self) -> str:
        """``beside``, as claim.lua reads it."""
        return "" if self.beside is None else " ".join(["beside", *(f"{each}/" for each in self.beside)])


class Claim(NamedTuple):
    """A key in our hands, and all that a turn over it reads."""

    queue: str
    key: str
    nonce: str
    owner: Cached | None
    children: list[Cached]
    """Those of the resource that the LoadSpec's children name first. A turn over pods takes them out."""
    expectations: Expectations | None
    min_rv: str
    """resource=rv of our own writes that the cache has not passed yet; "" when it has passed all."""
    unsettled: bool
    """Some holder announced writes, and not all are answered. Without expectations this asks for a live list."""
    crashes: int
    others: Mapping[str, list[Cached]] = NO_OTHERS
    """Children of the further resources that the LoadSpec names, each of them present."""
    now_ms: int = 0
    """Redis's clock at the claim, which the times in the expectations are of."""
    why: str = ""
    """What queued it: "since_ms count first[, last]" (``looks.history.Queued``). For people, figures and traces."""
    counts: Mapping[bytes, int] = NO_COUNTS
    """Class -> how many, in place of all children; "What is counted" in ``LoadSpec`` says when."""
    unloaded: Sequence[Unloaded] = ()
    """Children that ``load`` is to bring; there are none in what it returns."""
    refusal: str = ""
    """Why the objects are not to be trusted. Only the signing broker writes it; then no turn begins."""
    late_ms: int = 0
    """So long after ``now_ms``, at most, the children were loaded, by the clock of the worker, which enters it."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """The resourceVersion that the cache of a resource equals, and ms since that was last confirmed."""

    rv: str
    age_ms: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The claims of one call, all of one queue, and the watermark of every resource that its LoadSpec names."""

    queue: str
    claims: list[Claim]
    watermarks: dict[str, Watermark]
    local_caches: dict[str, Delta] = field(default_factory=dict)
    waited_ms: Sequence[int] = field(default=(), compare=False)
    """How long each key was queued, by Redis's clock. Empty from the in-memory twin, which does not measure it."""
    deadline_ms: int = field(default=0, compare=False)
    """Until when its claims may send, by the clock of the worker, which enters it."""

    @property
    def unloaded(self) -> bool:
        """Whether ``load`` has something to bring."""
        return any(claim.unloaded for claim in self.claims) or any(each.unread for each in self.local_caches.values())


class Idle(StrEnum):
    """Why a claim call brought nothing."""

    EMPTY = "EMPTY"  # no key is queued: wait for a token
    ALONE = "ALONE"  # a key is queued that is claimed alone: end the turns under way, then ask again
    LIMITED = "LIMITED"  # keys are queued, but the rates of their queues let none go now: ask again soon
    WAIT = "WAIT"  # the epoch is draining, or the fleet is paused: wait and ask again
    UNKNOWN = "UNKNOWN"  # not registered (any more): register, or exit
    DRAIN = "DRAIN"  # people want this worker to leave: exit


Claimed = Callable[[], Batch | Idle]
"""Gives what a claim has brought, or raises what it met. Called once."""


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


def class_name(text: bytes) -> str:
    """The name of the class with this text: its sign and a digest, as many objects have the same long text."""
    return chr(text[0]) + urlsafe_b64encode(blake2b(text, digest_size=8).digest()).decode().rstrip("=")


@lru_cache(2_048)
def class_of(kind: bytes, wakes: tuple[str, ...]) -> tuple[str, bytes]:
    """Name and text of the class of objects that count as this kind and wake these keys."""
    first, more, ending = kind.partition(b"\n")
    assert b" " not in first, "the keys that it wakes stand behind a blank"
    text = b" ".join((first, *map(str.encode, wakes))) + more + ending
    return class_name(text), text


def wakes_in(text: bytes) -> str:
    """The keys that objects of a class wake, from its text."""
    return text.partition(b"\n")[0].partition(b" ")[2].decode()


def kind_in(text: bytes) -> bytes:
    """What the objects of a class count as, from its text: all of it but the keys that they wake."""
    first, more, ending = text.partition(b"\n")
    return first.partition(b" ")[0] + more + ending


def ending_of(kind: bytes, uid: str) -> bytes:
    """What ends the blob of an object of a kind: what the kind says, and then the uid. It is not kept with the object.
    Where a kind has one line only, it says nothing.
    """
    _, more, ending = kind.partition(b"\n")
    return ending + uid.encode() if more else b""


def without_ending(blob: bytes, kind: bytes, uid: str) -> bytes:
    """The blob of an object of the kind as it is kept."""
    ending = ending_of(kind, uid)
    assert blob.endswith(ending), "a kind says how the blobs of its objects end"
    return blob.removesuffix(ending)


class Event(NamedTuple):
    """One change of a cached object. ``blob`` None: deleted. ``entries``: index entries. ``wakes``: "queue:key".

    ``signature``: a word to be kept beside it. A change of it alone, or of the rv alone, is no change of the object.
    ``apart``: name and bytes of a part that is stored once for all objects that name it. ``kind``: what the object
    counts as under the first of its entries, as text; b"" where it does not count. It begins with "+" or "-"
    (``LoadSpec``). What follows its first line, which has no blanks, ends the object's blob, before the uid, and is
    left out of ``blob``. ``change``: "added": it is new, and has a controller. "observed": its own controller, whose
    key is the first that it wakes, has observed its generation, as after a status of ours. "set": all else.
    """

    id: str
    rv: str
    uid: str
    blob: bytes | None
    entries: tuple[str, ...] = ()
    wakes: tuple[str, ...] = ()
    signature: str = ""
    apart: tuple[str, bytes] | None = None
    kind: bytes = b""
    change: str = "set"

    @property
    def word(self) -> str:
        """What happened to the object: its change, or "del"."""
        return "del" if self.blob is None else self.change

    def trigger(self, resource: str, task: str) -> str:
        """What queues a key that it wakes: its status is news to others than its own controller."""
        is_news = self.word == "observed" and (task,) != self.wakes[:1]
        return f"{'status' if is_news else self.word} {resource}/{self.id}"

    @property
    def whole(self) -> bytes:
        """The blob, as readers get it."""
        return (self.blob or b"") + ending_of(self.kind, self.uid)

    @property
    def size(self) -> int:
        """Bytes of the object and of the part that is stored apart."""
        return len(self.blob or b"") + (len(self.apart[1]) if self.apart else 0)

    @property
    def classed(self) -> tuple[str, bytes] | None:
        """Name and text of its class, if it has one."""
        counts = self.kind and self.blob is not None and (self.entries or self.apart)
        return class_of(self.kind, self.wakes) if counts else None

    @property
    def words(self) -> str:
        """Index entries and wake keys, as the scripts take them. A part apart is named behind a "*". The last word is
        the class, which has the wake keys.
        """
        entries = (*self.entries, f"*{self.apart[0]}") if self.apart else self.entries
        if (classed := self.classed) is not None:
            return " ".join((*entries, f"#{classed[0]}")) + "\n"
        return " ".join(entries) + "\n" + " ".join(self.wakes)

    @property
    def uid_and_signature(self) -> str:
        """As the scripts take it."""
        return f"{self.uid} {self.signature}" if self.signature else self.uid


class Ingested(NamedTuple):
    """Outcome of a batch: "OK", "GAP" (watch again from ``watermark``) or "NEEDLIST".

    ``woken``: where it was asked for, "queue:key", ms since when it is queued, and the number of the event that did it.
    """

    verdict: str
    watermark: str = ""
    added: int = 0
    skipped: int = 0
    woken: tuple[tuple[str, int, int], ...] = ()


class Compared(NamedTuple):
    """What the cache of a resource is, beside a part of a list. ``generation``: the one that is read. ``watermark``: ""
    where the resource was never listed. ``objects``: how many the generation that was asked for has. ``same``: how many
    of the part it has in the same version.
    """

    generation: str
    watermark: str
    objects: int
    same: int


COUNTS = "counts"


class LoadSpec(NamedTuple):
    """What a claim hands over: the owners' resource, children, and what changed in resources kept in memory.

    ``children``: (resource, index, word), the objects under the entry "index=value", where the word says which value:
    "uid" of the owner, "name" of the key after its namespace, if it has one, or "wanted": those that the owner's own
    entries name. Only those of "name" are read where there is no owner object. The first word may be "counts": those
    of "uid", or only how many there are of each class (below). ``local_caches``: (resource, version known, "" for
    none). ``rate_per_s``: keys a second that all claims together may take of the queue; 0: no bound.

    What is wanted: an owner's entry "?value" is no index entry but a place to look at; of several the one with the
    fewest objects is chosen. "?a|b" is two places together; "+value" is looked at on top. All that is under a value
    "namespace/..." has to be under "namespace" as well, of the owner's key: where nothing is, nothing more is asked.

    What is counted: objects with a ``kind``, under the first of their entries. An owner's entry "=number" is no index
    entry. It allows counts in place of objects while just so many objects have a kind with "+", every object under the
    entry is counted, and the turn reads no other object, expectation or unread write.
    """

    queue: str
    owners: str
    children: tuple[tuple[str, str, str], ...] = ()
    local_caches: tuple[tuple[str, str], ...] = ()
    rate_per_s: float = 0.0

    @property
    def in_full(self) -> LoadSpec:
        """The same, with objects in place of counts."""
        children = tuple((*child[:2], "uid" if child[2] == COUNTS else child[2]) for child in self.children)
        return self._replace(children=children)

    @property
    def text(self) -> str:
        words = [self.queue, self.owners, *("/".join(child) for child in self.children)]
        if self.rate_per_s:
            words.insert(2, f"rate={self.rate_per_s!r}")
        if self.local_caches:
            words += (f"{resource}/{version or '-'}/mirror" for resource, version in self.local_caches)
        return " ".join(words)

    @property
    def resources(self) -> tuple[str, ...]:
        """Of the children, each once, in the order in which they are first named."""
        return tuple(dict.fromkeys(child[0] for child in self.children))
