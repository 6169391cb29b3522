"""What a user's function of the `steps` style may ask of the turn that runs it, and what it may raise.

Requests and answers are values: the function runs on a thread of its own, the turn on the worker's. Bodies are JSON,
made and read on the function's side, so that they cost the worker's thread nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class LostClaim(Exception):
    """The object may be in the hands of another worker: do nothing more for it. The next turn over it does the rest."""


class ApiError(Exception):
    """The API refused a write, or did not answer. ``code``: HTTP's; 0: sent, and no answer; below 0: never sent.

    ``stale``: the object has changed or gone since it was read, so the next run may well do better.
    """

    def __init__(self, code: int, message: str, *, stale: bool = False) -> None:
        super().__init__(message)
        self.code, self.stale = code, stale


class Get(NamedTuple):
    """Answer: the object's JSON, or None if the cache has none."""

    resource: str
    namespace: str
    name: str


class List(NamedTuple):
    """Answer: the JSON of each object of the resource that the claim is about, as list[bytes]."""

    resource: str


class Put(NamedTuple):
    """Create an object, or apply it. Answer: its JSON as the API has it now; or ApiError.

    ``verb``: create or apply. ``is_child``: the body names our object as its controller.
    """

    verb: str
    resource: str
    namespace: str
    name: str
    body: bytes
    is_child: bool


class Patch(NamedTuple):
    """A JSON merge patch. Answer: the object's JSON; or ApiError."""

    resource: str
    namespace: str
    name: str
    body: bytes


class Delete(NamedTuple):
    """Answer: None, also where there is none; or ApiError."""

    resource: str
    namespace: str
    name: str


class SetStatus(NamedTuple):
    """A merge patch of our object's status. Answer: None; or ApiError."""

    body: bytes


class Tell(NamedTuple):
    """An event about our object. Answer: None."""

    type: str
    reason: str
    message: str


class StillMine(NamedTuple):
    """Ask Redis whether the claim is ours; then its lease begins anew. Answer: None; or LostClaim."""


class LookAgain(NamedTuple):
    """Run the function again after so many ms. Answer: None."""

    after_ms: int


Request = Get | List | Put | Patch | Delete | SetStatus | Tell | StillMine | LookAgain


class Ended(NamedTuple):
    """The function ended: with what it raised, or None."""

    error: BaseException | None


Asked = Request | Ended


class Requests(Protocol):
    """The function's end of the line. Both raise the answer if it is an exception, and LostClaim once the turn is over.

    ``ask``: from a thread that may wait. ``ask_later``: from the event loop of async functions.
    """

    def ask(self, request: Request) -> Any: ...
    async def ask_later(self, request: Request) -> Any: ...
