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
    ABSENT = "absent"  # of a list: the server has no such kind


@dataclass(frozen=True, slots=True)
class End:
    """How a stream ended. ``text``: for the log."""

    ending: Ending
    text: str = ""


class Stream(Protocol[T_co]):
    """Items in the order of their arrival. Never blocks."""

    def take(self, most: int) -> Sequence[T_co]:
        """Up to ``most`` items that have arrived; empty if there are none now."""

    def end(self) -> End | None:
        """How it ended; None until every item before the end has been taken."""

    def close(self) -> None:
        """Stop; items that have not been taken are lost."""


class WatchStream(Stream[WatchEvent], Protocol):
    """The events of a watch."""

    def pace(self, awaited: bool) -> None:
        """Say whether somebody waits for what comes next. If not, it may come later, and more of it at once."""


class ListerWatcher(Protocol):
    """One resource of one API server, in all namespaces (upstream: client-go/tools/cache, ListerWatcher)."""

    def watch(self, rv: str) -> WatchStream:
        """Every event after ``rv``, in order and without a gap; never the unordered initial ones."""

    def pages(self, limit: int) -> Stream[Page]:
        """A consistent list, read after this call."""

    def heard_ms(self) -> int:
        """When the server last sent anything of this resource, on the process's clock; 0 for never."""
