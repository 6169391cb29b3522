"""Reads all cached objects under index entries, a page a call, so that no call keeps Redis busy for long."""

from __future__ import annotations

from collections.abc import Sequence

from oarlock.broker.protocol import Broker
from oarlock.broker.values.objects import Cached, PageMark


class Pages:
    """A walk over ``entries``. It finds every object that is under one of them from beginning to end, as it was at
    ``rv`` or later; later changes are in the events after ``rv``. That is the watermark of the first page, "" where the
    resource was never listed.
    """

    def __init__(self, broker: Broker, resource: str, entries: Sequence[str]) -> None:
        self._broker, self._resource, self._entries = broker, resource, entries
        self._mark: PageMark | None = None
        self._found: dict[str, Cached] = {}
        self.rv = ""

    @property
    def found(self) -> list[Cached]:
        """Each object once, as it was read last."""
        return list(self._found.values())

    def step(self) -> bool:
        """Read one page. Returns whether it was the last. After a list was committed meanwhile, the walk begins anew.

        Raises what the broker raises; then the same page is read by the next step.
        """
        page = self._broker.page(self._resource, self._entries, self._mark)
        if page is None:
            self._mark = None
            return False
        if self._mark is None:
            self.rv, self._found = page.watermark, {}
        self._found |= {each.uid: each for each in page.objects}
        self._mark = page.mark
        return self._mark is None


def every(broker: Broker, resource: str, entries: Sequence[str]) -> list[Cached]:
    """The whole walk at once."""
    pages = Pages(broker, resource, entries)
    while not pages.step():
        pass
    return pages.found
