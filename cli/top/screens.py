"""The screen that lies over `oarlock top`: help, or all about one key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from oarlock.workers.process.log_line import printable

HELP = """\
1 to 5, Tab    the tabs: keys, workers, failing and parked keys, namespaces, Redis
up, down       a row; left and right move a table that is wider than the terminal
/              show only rows with these words; Enter keeps the filter, Escape ends it
Enter          all about the row's key: why nothing happens, its last turns, its last traceback
r              look now
R              requeue the row's key: queue it again, now (needs --write)
?              this help
q              leave

A key that changes something is upper case. Without --write none does.

Lists are cut, so that a look costs no more with 100,000 keys than with 1,000. The line below a
table says what part it shows. What nobody counts is "-": turns/s with a Redis before 7, API calls
and 429s where no process's /metrics is known (--metrics URL).

view           the age of the cache: how long ago an ingestor confirmed it, of the oldest resource
between        a worker that holds no key and waits for none: it starts, computes, or has died
WRITES         writes of the key that were announced and have no answer yet"""


def safe(lines: Sequence[str]) -> Text:
    """Lines as they are: nothing in them is markup, and nothing controls the terminal."""
    return Text("\n".join(printable(line) for line in lines))


class Page(ModalScreen[None]):
    """Lines to scroll through, until Escape, Enter or q."""

    BINDINGS: ClassVar[Any] = [Binding("escape,q,enter", "dismiss", "Back")]
    CSS = """
    Page { align: center middle; }
    Page > VerticalScroll { width: 92%; height: 88%; border: round $primary; padding: 0 1; background: $surface; }
    Page #lines { width: 1fr; height: auto; }
    """

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._title, self._lines = title, lines

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text(), id="lines")
        yield Footer()

    def show(self, lines: Sequence[str]) -> None:
        """Other lines in place of the first ones."""
        self._lines = lines
        self.query_one("#lines", Static).update(self._text())

    def _text(self) -> Text:
        return safe([self._title, "", *self._lines])
