"""CPU and memory of an operator: of a process and all that descend from it, from /proc."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

from benchmarks.processes import cpu_ns

SAMPLE_S = 0.2


def tree_of(root: int) -> list[int]:
    """A process and its descendants, oldest first; nothing of what is gone."""
    children = _children()
    found = [root]
    for pid in found:
        found += sorted(children.get(pid, ()))
    return found


def children_of(parent: int) -> list[int]:
    return sorted(_children().get(parent, ()))


def _children() -> dict[int, list[int]]:
    """By parent; zombies left out."""
    children: dict[int, list[int]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                state, parent = (each / "stat").read_text().rpartition(")")[2].split()[:2]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state != "Z":
                children.setdefault(int(parent), []).append(int(each.name))
    return children


def pss_kb(pid: int) -> int:
    """Resident memory of a process; a page that n processes share counts as an nth of it. 0 of one that is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


class Usage:
    """A context manager: what the trees of ``roots`` took meanwhile. A process that ended meanwhile keeps its CPU as of
    the last look at it.
    """

    def __init__(self, roots: Callable[[], Iterable[int]]) -> None:
        self._roots = roots
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self.peak_kb = 0

    def __enter__(self) -> Usage:
        self._look()
        self._first = dict(self._last)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    @property
    def cpu_s(self) -> float:
        return sum(ns - self._first.get(pid, 0) for pid, ns in self._last.items()) / 1e9

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            self._look()

    def _look(self) -> None:
        pids = [pid for root in self._roots() for pid in tree_of(root)]
        self.peak_kb = max(self.peak_kb, sum(map(pss_kb, pids)))
        for pid in pids:
            try:
                self._last[pid] = cpu_ns(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended since it was listed
