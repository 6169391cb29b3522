"""What a claim takes and brings. A key in a worker's hands: only its holder can announce writes and finish it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from oarlock.broker.expectations import Expectations
from oarlock.broker.values.objects import Cached, Delta

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
        words += (f"{resource}/{version or '-'}/mirror" for resource, version in self.local_caches)
        return " ".join(words)

    @property
    def resources(self) -> tuple[str, ...]:
        """Of the children, each once, in the order in which they are first named."""
        return tuple(dict.fromkeys(child[0] for child in self.children))


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


NO_OTHERS: Mapping[str, list[Cached]] = MappingProxyType({})
NO_COUNTS: Mapping[bytes, int] = MappingProxyType({})


class Unloaded(NamedTuple):
    """Children that a claim leaves to ``load``: the ids of the objects of a resource that were under an index entry."""

    resource: str
    generation: str
    entry: str
    ids: Sequence[bytes]


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
    """How long each key was queued, by Redis's clock; by the in-memory twin's, since its first trigger."""
    deadline_ms: int = field(default=0, compare=False)
    """Until when its claims may send, by the clock of the worker, which enters it."""

    @property
    def unloaded(self) -> bool:
        """Whether ``load`` has something to bring."""
        return any(claim.unloaded for claim in self.claims) or any(each.unread for each in self.local_caches.values())


class Idle(StrEnum):
    """Why a claim call brought nothing."""

    EMPTY = "EMPTY"  # no key is queued: wait for a token
    SERVED = "SERVED"  # as EMPTY, to a claim beside others: a worker of the same queues waits, and claims next
    ALONE = "ALONE"  # a key is queued that is claimed alone: end the turns under way, then ask again
    LIMITED = "LIMITED"  # keys are queued, but the rates of their queues let none go now: ask again soon
    WAIT = "WAIT"  # the epoch is draining, or the fleet is paused: wait and ask again
    UNKNOWN = "UNKNOWN"  # not registered (any more): register, or exit
    DRAIN = "DRAIN"  # people want this worker to leave: exit


Claimed = Callable[[], Batch | Idle]
"""Gives what a claim has brought, or raises what it met. Called once."""
