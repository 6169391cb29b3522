"""The steps a turn may ask for. A turn is a generator: it yields a step and is sent the step's result.

So a turn never touches Redis, the API or a clock itself; ``workers.turn.engine.engine`` carries the steps out for real,
and the simulation stops between any two of them.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol, TypeVar

from oarlock.broker.values.turns import Entry, Finish
from oarlock.controllers.objects.selector import LabelSelector

T = TypeVar("T")


class Announce(NamedTuple):
    """Announce writes in Redis before they are sent. Result: the names already taken, as list[NameTaken]; if empty, all
    writes are announced. May raise ClaimLost.
    """

    owner_uid: str
    entries: tuple[Entry, ...]


class Reserve(NamedTuple):
    """Take up to ``wanted`` tokens of the rate limit, before announcing; for the later waves of a slow start, before
    sending. ``behind``: how many the turn wants after these. Result: Grant.
    """

    wanted: int
    behind: int = 0


class Grant(NamedTuple):
    """How many of the requests may be sent now; if not all, the ms until the next burst may."""

    granted: int
    wait_ms: int


class Write(NamedTuple):
    """One request that changes the cluster. ``verb``: create, delete, patch (strategic merge), merge (patch), status
    (merge) or apply (server-side, in the name of ``manager``; ``force``: over the fields of others).

    ``propagation``: of a delete; empty: the kind's own.
    """

    verb: str
    resource: str
    namespace: str
    name: str
    body: bytes = b""
    uid: str = ""
    rv: str = ""
    manager: str = ""
    force: bool = False
    propagation: str = ""

    @property
    def target(self) -> str:
        return f"{self.resource}/{self.name}"


class Send(NamedTuple):
    """Send writes at the same time, each at most once, none after the deadline. Result: list[Answer], in order.

    ``prepaid``: their tokens were reserved. Once half of the lease is over, the engine first asks Redis whether the
    claim is still ours: keys of a batch wait for each other, and writes that are not announced did not ask yet.
    """

    writes: tuple[Write, ...]
    prepaid: bool = False


class Read(NamedTuple):
    """Read objects live, at the same time. Result: list[Answer], in order."""

    resource: str
    namespace: str
    names: tuple[str, ...]


class ListLive(NamedTuple):
    """A consistent list of a namespace, past every cache. Result: Listed. Raises ``cluster.listing.ListError``.

    ``selector``: only of what it selects; None: of all.
    """

    resource: str
    namespace: str
    selector: LabelSelector | None = None


class Listed(NamedTuple):
    """The resourceVersion of a list, and the JSON of each object in it."""

    rv: str
    items: list[bytes]


class Look(NamedTuple):
    """Cached objects by id or index entry. Result: list[Cached].

    ``shared``: an answer from any moment since the batch was claimed will do, so the turns of the batch share one.
    ``paged``: there may be very many objects under the entries, so they are read in several calls.
    """

    resource: str
    ids: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    shared: bool = False
    paged: bool = False


class LookApart(NamedTuple):
    """The part of this name that is kept apart from objects. Result: bytes; b"" if no object has it any more."""

    resource: str
    name: str


class Wake(NamedTuple):
    """Queue keys. Result: None."""

    queue: str
    keys: tuple[str, ...]


class UserRun(Protocol):
    """A function of a user under way beside the worker's thread: ``workers.turn.engine.user_code.Run``."""

    def resume(self, answer: Any = None) -> Future[Any]: ...
    def abandon(self) -> None: ...


class Resume(NamedTuple):
    """Let a function of a user go on with the answer to its request; first of all, begin. Result: its next request, or
    its end (``user_code.Asked``).
    """

    run: UserRun
    answer: Any = None


class Failures(NamedTuple):
    """How many turns of the key have failed in a row. Result: int."""


Step = Announce | Reserve | Send | Read | ListLive | Look | LookApart | Wake | Resume | Failures
Steps = Generator[Step, Any, T]
"""A part of a turn: yields steps, is sent their results, and returns a T."""
Turn = Steps[Finish]


class TurnFailed(Exception):
    """A turn that did nothing, or not all of it. ``finish``: what is to be kept all the same."""

    def __init__(self, reason: str, finish: Finish) -> None:
        super().__init__(reason)
        self.finish = finish


class TurnRefused(TurnFailed):
    """A turn that was not begun, because a cached object is not signed by an ingestor. Nothing was written."""
