"""What a process tells of the life of a key, for traces. By default nobody listens, and that costs next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from oarlock.broker.values.claims import Claim

_NOTHING: AbstractContextManager[None] = nullcontext()


class Woken(NamedTuple):
    """A key that an event woke. ``since_ms``: since when it is queued for its next turn, by Redis's clock."""

    queue: str
    key: str
    since_ms: int
    trigger: str


class WriteTrace(Protocol):
    """One request of a turn. ``traceparent``: the header that it is to carry; "" for none."""

    @property
    def traceparent(self) -> str: ...
    def answered(self, code: int, message: str) -> None:
        """The server's code, or one of `cluster.answer`. Called on the I/O thread."""


class TurnTrace(Protocol):
    """One turn. ``trace_id``: 32 hex digits; "" where it is not traced."""

    @property
    def trace_id(self) -> str: ...
    def current(self) -> AbstractContextManager[None]:
        """What is done inside is done by this turn: its writes, and the user's own spans."""

    def function(self) -> AbstractContextManager[None]:
        """A function of the user runs inside. An exception counts as its error."""

    def write(self, verb: str, resource: str, namespace: str, name: str) -> WriteTrace:
        """A write is about to be sent. Called on the I/O thread."""

    def ended(self, verdict: str, did: str, error: str) -> None:
        """The turn has ended in Redis, or was lost; ``error``: why it failed. Only the first call counts."""


class Tracer(Protocol):
    """One process's. Main thread only. ``on``: whether anybody listens."""

    @property
    def on(self) -> bool: ...
    def begun(self, epoch: int, claim: Claim) -> TurnTrace:
        """The turn of a claim begins."""

    def now_ns(self) -> int:
        """Unix time, for ``published``."""

    def published(self, epoch: int, woken: Sequence[Woken], taken_ns: int) -> None:
        """Events have woken these keys. ``taken_ns``: when the events were taken from the watch."""

    def close(self) -> None:
        """Send what is left, for a second at most."""


class _Untraced:
    trace_id = traceparent = ""

    def current(self) -> AbstractContextManager[None]:
        return _NOTHING

    def function(self) -> AbstractContextManager[None]:
        return _NOTHING

    def write(self, verb: str, resource: str, namespace: str, name: str) -> WriteTrace:
        return self

    def answered(self, code: int, message: str) -> None:
        return None

    def ended(self, verdict: str, did: str, error: str) -> None:
        return None


UNTRACED = _Untraced()


class NoTracer:
    """Nobody listens."""

    on = False

    def begun(self, epoch: int, claim: Claim) -> TurnTrace:
        return UNTRACED

    def now_ns(self) -> int:
        return 0

    def published(self, epoch: int, woken: Sequence[Woken], taken_ns: int) -> None:
        return None

    def close(self) -> None:
        return None


current_turn: ContextVar[TurnTrace] = ContextVar("current_turn", default=UNTRACED)
"""The turn that a thread or a task works for."""
