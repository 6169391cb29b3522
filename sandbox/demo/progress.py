"""How far the owners of pods are: a live table on a terminal, else a line a second when something changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple

import click
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from oarlock.sandbox.demo.history import History
from oarlock.sandbox.demo.seen import DaemonsSeen, DeploymentSeen, OwnerSeen

LINE_EVERY_S = 1.0
DRAW_EVERY_S = 0.1


class Goal(NamedTuple):
    """What an owner is to ask for before it counts as settled. ``replicas`` None: whatever it asks for.

    ``generation``: at least this one; until the watch has shown it, nothing shown says anything. ``stuck``: what is
    waited for is that its progress deadline passes.
    """

    replicas: int | None = None
    generation: int = 0
    stuck: bool = False

    def reached(self, seen: OwnerSeen | None) -> bool:
        """Whether the owner asks for it and its status says that all is there."""
        if seen is None or seen.generation < self.generation or self.replicas not in (None, seen.wanted):
            return False
        if self.stuck:
            return isinstance(seen, DeploymentSeen) and seen.stuck and seen.observed >= self.generation
        return seen.settled


class Progress:
    """Shows the owners named (by title). A context manager; ``update`` as often as you like; ``quiet``: not at all."""

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
        owners = {title: seen for title, seen in self._history.owners().items() if title in self._keys}
        now = time.monotonic()
        if self._live is not None:
            if last or now - self._said_at >= DRAW_EVERY_S:
                self._live.update(self._table(owners), refresh=True)
                self._said_at = now
            return
        text = self._line(owners)
        if text != self._said and (last or now - self._said_at >= LINE_EVERY_S):
            click.echo(f"  {now - self._began:5.1f} s  {text}")
            self._said, self._said_at = text, now

    def _line(self, owners: Mapping[str, OwnerSeen]) -> str:
        ready, wanted = sum(s.ready for s in owners.values()), sum(s.wanted for s in owners.values())
        waiting = [how_far(seen) for seen in owners.values() if not seen.settled]
        return f"{ready}/{wanted} pods ready" + (
            f"; still coming: {', '.join(waiting)}" if waiting else "; all settled"
        )

    def _table(self, owners: Mapping[str, OwnerSeen]) -> Table:
        table = Table(box=None, pad_edge=False, title=self._title, title_justify="left", header_style="bold")
        for heading in ("KIND", "NAME", "DESIRED", "CREATED", "READY", "UP-TO-DATE", "AVAILABLE"):
            table.add_column(heading, justify="left" if heading in ("KIND", "NAME") else "right")
        table.add_column("")
        for seen in owners.values():
            created = self._history.active(seen.uid)
            mark = "[green]settled[/]" if seen.settled else ""
            done = min(seen.ready, seen.updated, seen.wanted)
            bar = ProgressBar(total=max(1, seen.wanted), completed=done, width=24)
            updated = str(seen.updated) if isinstance(seen, DaemonsSeen | DeploymentSeen) else "-"
            counts = (str(seen.wanted), str(created), str(seen.ready), updated, str(seen.available))
            table.add_row(seen.kind, seen.key, *counts, mark if mark else bar)
        table.caption, table.caption_justify = f"{time.monotonic() - self._began:.1f} s", "left"
        return table


def how_far(seen: OwnerSeen) -> str:
    """``shop/cart 9/12``; while pods are replaced ``shop/agent 3/12 replaced``."""
    replaces = seen.created == seen.wanted if isinstance(seen, DaemonsSeen) else isinstance(seen, DeploymentSeen)
    if replaces and seen.created > seen.updated < seen.wanted:
        return f"{seen.key} {seen.updated}/{seen.wanted} replaced"
    return f"{seen.key} {seen.available}/{seen.wanted}"


def await_settled(
    history: History,
    goals: Mapping[str, Goal],
    deadline: float,
    show: Callable[[], None],
    check: Callable[[], None],
) -> list[str]:
    """Wait until every owner (by title) has reached its goal. Returns those that have not.

    ``deadline`` of time.monotonic(); ``check`` may raise to end the waiting.
    """
    while True:
        history.changed.clear()
        owners = history.owners()
        missing = [title for title, goal in goals.items() if not goal.reached(owners.get(title))]
        show()
        if not missing or time.monotonic() > deadline:
            return missing
        check()
        history.changed.wait(0.05)
