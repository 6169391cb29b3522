"""The API as a reflector reads it: values and protocols only, so that tests can script what the server does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.listing import Page

T_co = TypeVar("T_co", covariant=True)


class Ending(StrEnum):
    """Why a stream ended."""

    CLOSED = "closed"  # in order: the list is complete, or the server ended the watch; go on from the last event
    EXPIRED = "expired"  # 410: the history from this resourceVersion is no longer kept
    DEAF = "deaf"  # nothing was heard for too long
    BROKEN = "broken"  # refused, cut off or unreadable


@dataclass(frozen=True, slots=True)
class End:
    """How a stream ended; ``text`` is for the log."""

    ending: Ending
    text: str = ""


class Stream(Protocol[T_co]):
    """What arrives, in order. Never blocks."""

    def take(self, most: int) -> Sequence[T_co]:
        """What is there, at most so many; empty when nothing is there now."""

    def end(self) -> End | None:
        """How it ended, once everything that came before the end has been taken."""

    def close(self) -> None:
        """Want no more of it."""


class ListerWatcher(Protocol):
    """One resource of one API server, in all namespaces (upstream: client-go/tools/cache, ListerWatcher)."""

    def watch(self, rv: str) -> Stream[WatchEvent]:
        """Every event after ``rv``, in order and without a gap; never the unordered initial ones."""

    def pages(self, limit: int) -> Stream[Page]:
        """A consistent list, read from now on."""

    def heard_ms(self) -> int:
        """When the server last said anything about this resource, on the process's clock; 0 for never."""
