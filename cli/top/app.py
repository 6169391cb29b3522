"""The terminal of `oarlock top`, drawn by Textual. It only draws, and turns keys into questions to the fleet.

A look, and all else that asks Redis, happens in a thread: a Redis that keeps silent does not hold up the keyboard.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets import Footer, Input, Static, TabbedContent, TabPane

from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cli.problems import NotDone
from oarlock.cli.tables import span
from oarlock.cli.top.heading import fleet_figures, key_figures, problems_of
from oarlock.cli.top.screens import HELP, Page, safe
from oarlock.cli.top.table import Rows
from oarlock.cli.top.tabs import TABS, Tab, Task, filtered
from oarlock.cli.watch.fleet_look import FleetLook
from oarlock.cli.watch.rates import Rates, rates
from oarlock.workers.process.log_line import printable

NO_WRITE = "requeue: this changes something; start `oarlock top` with --write"
NO_KEY = "this row is about no key"


class Asked(Protocol):
    """What the terminal asks; ``Fleet`` is the one."""

    def look(self) -> FleetLook:
        """Raises BrokerUnreachable."""

    def explain(self, task: Task) -> list[str]:
        """Raises NotDone."""

    def requeue(self, task: Task) -> str:
        """Raises NotDone."""


class Top(App[None]):
    """``write``: whether a key may change something. ``clock_s``: that of the looks."""

    TITLE = "oarlock top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: auto; padding: 0 1; background: $panel; }
    #caption { height: 1; padding: 0 1; color: $text-muted; }
    #filter { display: none; height: 3; }
    Screen { overflow: hidden; }
    TabbedContent, ContentSwitcher, TabPane { height: 1fr; }
    TabPane { padding: 0; }
    DataTable { height: 1fr; }
    """
    BINDINGS: ClassVar[Any] = [
        Binding("q", "quit", "Leave"),
        Binding("slash", "filter", "Filter"),
        Binding("r", "look", "Look now"),
        Binding("R", "requeue", "Requeue"),
        Binding("question_mark", "help", "Help"),
        Binding("tab", "next_tab(1)", "Next tab", priority=True, show=False),
        Binding("shift+tab", "next_tab(-1)", "Tab before", priority=True, show=False),
        Binding("escape", "end_filter", "End the filter", show=False),
        *(Binding(str(number), f"tab('{tab.name}')", tab.title, show=False) for number, tab in enumerate(TABS, 1)),
    ]

    def __init__(
        self, fleet: Asked, interval_s: float, write: bool = False, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._fleet, self._interval_s, self._write, self._clock_s = fleet, interval_s, write, clock_s
        self._look: FleetLook | None = None
        self._rates, self._lost, self._looking, self._filter = Rates(), "", False, ""

    def compose(self) -> ComposeResult:
        yield Static("looking ...", id="head")
        with TabbedContent(id="tabs"):
            for number, tab in enumerate(TABS, 1):
                with TabPane(f"{number} {tab.title}", id=tab.name):
                    yield Rows(tab)
        yield Static(id="caption")
        yield Input(placeholder="words that a row must have", id="filter")
        yield Footer()

    def on_mount(self) -> None:
        """Look for the first time, and from then on again and again."""
        self._table(self._tab).focus()
        self.set_interval(self._interval_s, self.action_look)
        self.action_look()

    # -- looking ----------------------------------------------------------------------------------------------------

    def action_look(self) -> None:
        """Look, unless the last look has not ended."""
        if not self._looking:
            self._looking = True
            self.run_worker(self._look_now, thread=True)

    def _look_now(self) -> None:
        try:
            look = self._fleet.look()
        except BrokerUnreachable as error:
            self.call_from_thread(self._looked, None, str(error))
        else:
            self.call_from_thread(self._looked, look, "")

    def _looked(self, look: FleetLook | None, lost: str) -> None:
        self._looking, self._lost = False, lost
        if look is not None:
            self._rates, self._look = rates(self._look, look), look
        self._draw()

    # -- drawing ----------------------------------------------------------------------------------------------------

    @property
    def _tab(self) -> Tab:
        active = self.query_one(TabbedContent).active
        return next((tab for tab in TABS if tab.name == active), TABS[0])

    def _table(self, tab: Tab) -> Rows:
        return self.query_one(f"#table-{tab.name}", Rows)

    def _draw(self) -> None:
        self.query_one("#head", Static).update(self._head())
        look, tab = self._look, self._tab
        if look is None:
            return
        every = list(tab.rows(look))
        rows = filtered(every, self._filter)
        self._table(tab).fill(rows)
        of = f" | filter {self._filter!r}: {len(rows):,} of {len(every):,} rows" if self._filter else ""
        self.query_one("#caption", Static).update(safe([tab.caption(look) + of]))

    def _head(self) -> Text:
        if self._look is None:
            return Text(f"Redis does not answer: {printable(self._lost)}" if self._lost else "looking ...")
        head = _figures(fleet_figures(self._look, self._rates))
        head.append_text(Text("\n")).append_text(_figures(key_figures(self._look)))
        problems = problems_of(self._look)
        if self._lost:
            age = span(int(1_000 * (self._clock_s() - self._look.at_s)))
            problems.insert(0, f"Redis does not answer ({self._lost}); what is shown is {age} old")
        for problem in problems:
            head.append(f"\n{printable(problem)}", style="bold red")
        return head

    # -- keys -------------------------------------------------------------------------------------------------------

    def action_tab(self, name: str) -> None:
        """Another tab."""
        self.query_one(TabbedContent).active = name

    def action_next_tab(self, step: int) -> None:
        """The tab beside this one."""
        self.action_tab(TABS[(TABS.index(self._tab) + step) % len(TABS)].name)

    def on_tabbed_content_tab_activated(self) -> None:
        """Only the table that is seen is filled."""
        self._draw()
        self._table(self._tab).focus()

    def action_help(self) -> None:
        """Say what the keys do."""
        self.push_screen(Page("help", HELP.splitlines()))

    def action_filter(self) -> None:
        """Ask for words."""
        asked = self.query_one("#filter", Input)
        asked.display = True
        asked.focus()

    def action_end_filter(self) -> None:
        """Show all rows again."""
        asked = self.query_one("#filter", Input)
        asked.value, asked.display = "", False
        self._table(self._tab).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while somebody types."""
        self._filter = event.value
        self._draw()

    def on_input_submitted(self) -> None:
        """Keep the filter, and go back to the table."""
        self.query_one("#filter", Input).display = bool(self._filter)
        self._table(self._tab).focus()

    def on_data_table_row_selected(self) -> None:
        """Enter: all about the row's key."""
        row = self._table(self._tab).selected
        if row is None or row.task is None:
            self._tell(NO_KEY, "warning")
            return
        task, page = row.task, Page(f"{row.task.queue} {row.task.key}", ["asking ..."])
        self.push_screen(page)
        self.run_worker(lambda: self._explain(task, page), thread=True)

    def _explain(self, task: Task, page: Page) -> None:
        try:
            lines = self._fleet.explain(task)
        except NotDone as problem:
            lines = list(problem.lines)
        self.call_from_thread(page.show, lines)

    def action_requeue(self) -> None:
        """Queue the row's key again, if this may change something."""
        row = self._table(self._tab).selected
        if not self._write:
            self._tell(NO_WRITE, "warning")
        elif row is None or row.task is None:
            self._tell(NO_KEY, "warning")
        else:
            task = row.task
            self.run_worker(lambda: self._requeue(task), thread=True)

    def _requeue(self, task: Task) -> None:
        try:
            self.call_from_thread(self._tell, self._fleet.requeue(task), "information")
        except NotDone as problem:
            self.call_from_thread(self._tell, " ".join(problem.lines), "error")
        self.call_from_thread(self.action_look)

    def _tell(self, text: str, severity: Any) -> None:
        self.notify(printable(text), severity=severity, markup=False)


def _figures(figures: dict[str, str]) -> Text:
    text = Text()
    for name, value in figures.items():
        text.append(f"{'  ' if text else ''}{name} ").append(printable(value), style="bold")
    return text
