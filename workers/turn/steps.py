"""The steps a turn may ask for. A turn is a generator: it yields a step and is sent the step's result.

So a turn never touches Redis, the API or a clock itself; ``workers.turn.engine.engine`` carries the steps out for real,
and the simulation stops between any two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oarlock.broker.values import Entry, Finish
from oarlock.controllers.scheduling.model import Node
from oarlock.workers.turn.kept_count import KeptCount
from oarlock.workers.turn.late_status import LateStatus


class Announce(NamedTuple):
    """Record writes before they are sent. Result: list[NameTaken], empty when recorded. May raise ClaimLost."""

    owner_uid: str
    entries: tuple[Entry, ...]


class Reserve(NamedTuple):
    """Take up to ``wanted`` tokens of the rate limit, before recording. Result: Grant."""

    wanted: int


class Grant(NamedTuple):
    """How many of the requests may be sent now; where it is fewer, ms until the next burst may."""

    granted: int
    wait_ms: int


class Write(NamedTuple):
    """One request that changes the cluster. ``verb``: create, delete, patch (strategic merge) or status (merge)."""

    verb: str
    resource: str
    namespace: str
    name: str
    body: bytes = b""
    uid: str = ""
    rv: str = ""

    @property
    def target(self) -> str:
        return f"{self.resource}/{self.name}"


class Send(NamedTuple):
    """Send writes at the same time, each at most once, none after the deadline. Result: list[Answer], in order.

    ``prepaid``: their tokens were reserved. Where half of the lease is over, a look comes first whether the claim is
    still ours: keys of a batch wait for each other, and what needs no new record has made no such look.
    """

    writes: tuple[Write, ...]
    prepaid: bool = False


class Read(NamedTuple):
    """Read objects live, at the same time. Result: list[Answer], in order."""

    resource: str
    namespace: str
    names: tuple[str, ...]


class ListLive(NamedTuple):
    """A consistent list of a namespace, past every cache. Result: Listed. Raises ``cluster.listing.ListError``."""

    resource: str
    namespace: str


class Listed(NamedTuple):
    """The resourceVersion of a list, and the JSON of each object in it."""

    rv: str
    items: list[bytes]


class Look(NamedTuple):
    """Cached objects by id or index entry. Result: list[Cached].

    ``shared``: as they were at any moment since the batch was claimed will do, so its turns may share one answer.
    ``paged``: of those under the entries there may be very many, so they are read in several calls.
    """

    resource: str
    ids: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    shared: bool = False
    paged: bool = False


class Wake(NamedTuple):
    """Queue keys. Result: None."""

    queue: str
    keys: tuple[str, ...]


Step = Announce | Reserve | Send | Read | ListLive | Look | Wake
Turn = Generator[Step, Any, Finish]


class View(NamedTuple):
    """The cache at the claim: what that of the pods equals, ms since it and the nodes' were last confirmed, and all
    nodes by name, for kinds that need them.
    """

    pods_rv: str = ""
    pods_age_ms: int = 0
    nodes: Mapping[str, Node] = {}
    nodes_age_ms: int = 0


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What turns of a process share: whether terminatingReplicas is written, the times, the wall clock, whose status
    was put off, and whether the server keeps that count.
    """

    reports_terminating: bool
    view_age_max_ms: int
    wall_ms: Callable[[], int]
    late: LateStatus = field(default_factory=LateStatus)
    kept: KeptCount = field(default_factory=KeptCount)


class TurnFailed(Exception):
    """A turn that came to nothing, or not to all of it. ``finish`` says what is to be kept all the same."""

    def __init__(self, reason: str, finish: Finish) -> None:
        super().__init__(reason)
        self.finish = finish


class TurnRefused(TurnFailed):
    """A turn that was not begun, because a cached object is not signed by an ingestor. Nothing was written."""
