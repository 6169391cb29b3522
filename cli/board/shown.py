"""What one look comes to on the page: parts as bytes, each made once for all who watch, and only what has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from oarlock.cli.top.heading import fleet_figures, key_figures, problems_of
from oarlock.cli.top.tabs import TABS, Row
from oarlock.cli.watch.fleet_look import FleetLook
from oarlock.cli.watch.rates import Rates
from oarlock.workers.process.log_line import printable

TAB_NAMES = tuple(tab.name for tab in TABS)
PROCESSES = "processes"
PARTS = (*TAB_NAMES, PROCESSES)
"""What a page may ask for besides the head."""


class Shown:
    """A look, or that there was none (``lost``: why), with its number. ``before``: the one before it."""

    def __init__(
        self,
        number: int,
        look: FleetLook | None,
        rates: Rates,
        point: Sequence[float | None],
        lanes: Sequence[Any],
        lost: str = "",
        before: Shown | None = None,
    ) -> None:
        self.number, self.look, self._rates, self._lost = number, look, rates, lost
        self.point, self._lanes, self._before = point, lanes, before
        self._rows: dict[str, list[Row]] = {}
        self._events: dict[tuple[str, bool], bytes] = {}
        if before is not None:
            before._before = None  # two are enough to tell what has changed

    def head(self) -> dict[str, Any]:
        """The figures, and what is wrong."""
        look = self.look
        problems = [f"Redis does not answer: {self._lost}; what is shown is old"] if self._lost else []
        if look is None:
            return {"figures": {}, "keys": {}, "problems": problems, "lost": bool(self._lost)}
        return {
            "figures": fleet_figures(look, self._rates),
            "keys": key_figures(look),
            "problems": problems + [printable(problem) for problem in problems_of(look)],
            "lost": bool(self._lost),
        }

    def part(self, name: str) -> dict[str, Any]:
        """All of a part, as it is told whoever asks once."""
        if name == PROCESSES:
            return {"part": name, "lanes": self._lanes}
        return {"part": name, "caption": self._caption(name), "rows": [_told(row) for row in self.rows(name)]}

    def rows(self, name: str) -> list[Row]:
        """The rows of a tab."""
        if name not in self._rows:
            (tab,) = (tab for tab in TABS if tab.name == name)
            self._rows[name] = list(tab.rows(self.look)) if self.look is not None else []
        return self._rows[name]

    def events(self, parts: Sequence[str], *, whole: bool) -> bytes:
        """For a page with these parts: all, or what has changed since the look before."""
        found = [self._event("head", whole), event("point", self.point)]
        return b"".join([*found, *(self._event(part, whole) for part in parts)])

    def _event(self, name: str, whole: bool) -> bytes:
        whole = whole or self._before is None
        if (name, whole) not in self._events:
            self._events[name, whole] = self._make(name, whole)
        return self._events[name, whole]

    def _make(self, name: str, whole: bool) -> bytes:
        before = None if whole else self._before
        if name == "head":
            now = self.head()
            return b"" if before is not None and before.head() == now else event("head", now)
        if name == PROCESSES:
            return b"" if before is not None and before._lanes == self._lanes else event("part", self.part(name))
        old = before.rows(name) if before is not None else []
        new = self.rows(name)
        if before is None or len(old) != len(new) or any(a.name != b.name for a, b in zip(old, new, strict=True)):
            return event("part", self.part(name))
        changed = [[at, _told(row)] for at, row in enumerate(new) if row != old[at]]
        caption = self._caption(name)
        if not changed and caption == before._caption(name):
            return b""
        return event("change", {"part": name, "caption": caption, "rows": changed})

    def _caption(self, name: str) -> str:
        return next(tab.caption(self.look) for tab in TABS if tab.name == name) if self.look is not None else ""


def _told(row: Row) -> dict[str, Any]:
    return {"name": row.name, "cells": list(row.cells), "task": row.task and list(row.task), "alarm": row.alarm}


def event(name: str, value: Any) -> bytes:
    """As a server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(value))
