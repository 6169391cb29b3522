"""What the recorders saw, as plain values: the checker reads nothing else.

Times are unix seconds of this machine's clock (``_s``); all recorders and servers run on it. A task is "queue:ns/name",
as in the product's lease table. Nothing here knows how it was recorded.
"""

from __future__ import annotations

from typing import NamedTuple

# -- the audit log: one request -------------------------------------------------------------------------------------


class Request(NamedTuple):
    """A write that the API server is done with. ``rv``: of the object that it was about, 0 where there was none.

    ``ours``: sent by a worker; ``second``: by one of the second fleet, which is none of ours. ``owner``, ``task``:
    controller named in the body of a create. ``asked_uid``, ``asked_rv``: preconditions of a delete, or uid and
    resourceVersion in the body of a patch. ``body``: whether the log had one; ``spec``: whether it held a spec.
    """

    received_s: float
    done_s: float
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    committed: bool
    ours: bool
    rv: int = 0
    uid: str = ""
    owner: str = ""
    task: str = ""
    asked_uid: str = ""
    asked_rv: str = ""
    fault: str = ""
    body: bool = True
    second: bool = False
    spec: bool = False


# -- the trace of Redis ---------------------------------------------------------------------------------------------


class Attached(NamedTuple):
    """From here on every command of this server is seen. ``epoch``, ``phase``: as they stood just then; 0 and "": none.

    What came before may have been missed.
    """

    at_s: float
    epoch: int = 0
    phase: str = ""


CUT = "the connection was closed"
"""The reason of a loss that is noticed by a broken connection: what Redis had done and not yet shown is lost, too."""


class Lost(NamedTuple):
    """The data went: flushed, or the server died (``CUT``)."""

    at_s: float
    why: str


class EpochBegun(NamedTuple):
    """A new epoch began, and drains."""

    at_s: float
    epoch: int


class Opened(NamedTuple):
    """Turns may begin."""

    at_s: float
    epoch: int


class Watermark(NamedTuple):
    """The cache of a resource equals the API at ``rv`` from here on."""

    at_s: float
    epoch: int
    resource: str
    rv: int


class Claimed(NamedTuple):
    """A lock was written."""

    at_s: float
    epoch: int
    task: str
    holder: str
    nonce: str


class Recorded(NamedTuple):
    """An announcement of writes was accepted; without ``entries``, the lease was renewed.

    ``nonce``: as the caller gave it. An entry is (field, uid): field is "create pods/web-1", "delete pods/web-1" or
    "scale replicasets/web-5d".
    """

    at_s: float
    epoch: int
    task: str
    nonce: str
    entries: tuple[tuple[str, str], ...] = ()


class Answered(NamedTuple):
    """An announced write is no longer pending. ``field`` "": none of the key is."""

    at_s: float
    epoch: int
    task: str
    field: str


class Dirty(NamedTuple):
    """The key changed while a worker held it."""

    at_s: float
    epoch: int
    task: str


class Unlocked(NamedTuple):
    """A lock was removed. ``by``: finish, release, reclaim, or another script's name; "" for a plain command.

    ``nonce``: as the caller of finish gave it. ``state``: where the key went: queued, delayed, parked, or idle.
    ``holder``: whom release named.
    """

    at_s: float
    epoch: int
    task: str
    by: str
    nonce: str = ""
    holder: str = ""
    state: str = "idle"


class Refused(NamedTuple):
    """A record or finish whose nonce was not the current one; nothing changed."""

    at_s: float
    epoch: int
    task: str
    nonce: str
    step: str


class Renewed(NamedTuple):
    """A lease was renewed for these holders."""

    at_s: float
    epoch: int
    task: str
    holders: tuple[str, ...]


class LiveList(NamedTuple):
    """A turn ended that had decided on a live list."""

    at_s: float
    epoch: int
    task: str


UNKNOWN = "?"
"""What the recorder writes for the name of a script that is none of the product's."""


class Unknown(NamedTuple):
    """A script was called whose text is none of the product's scripts: its meaning is not known."""

    at_s: float
    epoch: int


Step = (
    Attached
    | Lost
    | EpochBegun
    | Opened
    | Watermark
    | Claimed
    | Recorded
    | Answered
    | Dirty
    | Unlocked
    | Refused
    | Renewed
    | LiveList
    | Unknown
)


# -- what the campaign did ------------------------------------------------------------------------------------------


class Blow(NamedTuple):
    """A fault that was carried out. ``kind``: worker, ingestor, supervisor, pause, flushall, redis, second fleet, or an
    episode's name; ``whole``: it concerned the whole fleet.

    ``holders``: workers that died with it (or stood still until ``until_s``). ``why``: why the victim was chosen.
    """

    at_s: float
    kind: str
    pid: int = 0
    holders: tuple[str, ...] = ()
    until_s: float = 0.0
    why: str = ""
    whole: bool = False


class End(NamedTuple):
    """The end of a process, noticed a little later. ``began_s``: when it was first seen."""

    at_s: float
    role: str
    pid: int
    began_s: float = 0.0


class Facts(NamedTuple):
    """What the checker must know of the run. ``drain_s``: D, after which a write of ours can no longer take effect.

    ``second_from_s``, ``second_to_s``: while a second fleet ran; its last write takes effect at most D later.
    ``second_timeout_ms``: by this the audit log knows its requests (``audit_log``).
    """

    drain_s: float
    faults_ended_s: float
    ended_s: float
    settle_limit_s: float = 30.0
    second_from_s: float = 0.0
    second_to_s: float = 0.0
    second_timeout_ms: int = 0
    progress_s: float = 0.0
    """An owner must have what it asks for within this time while faults last; 0: not judged."""
    api_alone: bool = False
    """Redis was not watched: what only its trace can tell is not judged."""

    def two_fleets(self, *times_s: float) -> bool:
        """Whether a write that takes effect at one of these times may have been decided beside another fleet."""
        until_s = self.second_to_s + self.drain_s
        return self.second_to_s > 0 and any(self.second_from_s <= at_s <= until_s for at_s in times_s)


class Violation(NamedTuple):
    """One broken promise: which, whose, when, at which revision (0: none), and in words."""

    kind: str
    task: str
    at_s: float
    rv: int
    text: str
