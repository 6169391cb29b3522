"""How far the ReplicaSets are: a live table on a terminal, else a line a second when something changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import click
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from workers.up.history import History, SetSeen

LINE_EVERY_S = 1.0
DRAW_EVERY_S = 0.1


class Progress:
    """Shows the sets named. A context manager; ``update`` as often as you like. ``quiet`` shows nothing."""

    def __init__(self, history: History, keys: Sequence[str], title: str, *, quiet: bool = False) -> None:
        self._history, self._keys, self._title, self._quiet = history, list(keys), title, quiet
        self._console = Console()
        self._live = (
            Live(console=self._console, auto_refresh=False) if self._console.is_terminal and not quiet else None
        )
        self._began = self._said_at = time.monotonic()
        self._said = ""

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.__enter__()
        elif not self._quiet:
            click.echo(self._title)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.update(last=True)
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def update(self, *, last: bool = False) -> None:
        """Show how far it is now."""
        if self._quiet:
            return
        sets = {key: seen for key, seen in self._history.sets().items() if key in self._keys}
        now = time.monotonic()
        if self._live is not None:
            if last or now - self._said_at >= DRAW_EVERY_S:
                self._live.update(self._table(sets), refresh=True)
                self._said_at = now
            return
        text = self._line(sets)
        if text != self._said and (last or now - self._said_at >= LINE_EVERY_S):
            click.echo(f"  {now - self._began:5.1f} s  {text}")
            self._said, self._said_at = text, now

    def _line(self, sets: Mapping[str, SetSeen]) -> str:
        ready, wanted = sum(s.ready for s in sets.values()), sum(s.replicas for s in sets.values())
        waiting = [f"{key} {seen.available}/{seen.replicas}" for key, seen in sets.items() if not seen.settled]
        return f"{ready}/{wanted} pods ready" + (
            f"; still coming: {', '.join(waiting)}" if waiting else "; all settled"
        )

    def _table(self, sets: Mapping[str, SetSeen]) -> Table:
        table = Table(box=None, pad_edge=False, title=self._title, title_justify="left", header_style="bold")
        for heading in ("REPLICASET", "DESIRED", "CREATED", "READY", "AVAILABLE"):
            table.add_column(heading, justify="left" if heading == "REPLICASET" else "right")
        table.add_column("")
        for key, seen in sets.items():
            created = self._history.active(seen.uid)
            mark = "[green]settled[/]" if seen.settled else ""
            bar = ProgressBar(total=max(1, seen.replicas), completed=min(seen.ready, seen.replicas), width=24)
            counts = (str(seen.replicas), str(created), str(seen.ready), str(seen.available))
            table.add_row(key, *counts, mark if mark else bar)
        table.caption, table.caption_justify = f"{time.monotonic() - self._began:.1f} s", "left"
        return table


def await_settled(
    history: History,
    wanted: Mapping[str, int],
    deadline: float,
    show: Callable[[], None],
    check: Callable[[], None],
) -> list[str]:
    """Wait until every set asks for its number in ``wanted`` and its status says that all is there. Returns the others.

    ``deadline`` of time.monotonic(); ``check`` may raise to end the waiting.
    """
    while True:
        history.changed.clear()
        sets = history.sets()
        missing = [key for key, count in wanted.items() if not _is_settled(sets.get(key), count)]
        show()
        if not missing or time.monotonic() > deadline:
            return missing
        check()
        history.changed.wait(0.05)


def _is_settled(seen: SetSeen | None, count: int) -> bool:
    return seen is not None and seen.replicas == count and seen.settled
