"""A table whose rows are replaced again and again, under a cursor that stays on its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from oarlock.cli.top.tabs import Row, Tab

ALARM = "bold red"


class Rows(DataTable[Text]):
    """The rows of a tab. Only cells that differ are drawn anew, so neither cursor nor view jumps."""

    BINDINGS: ClassVar[Any] = [Binding("enter", "select_cursor", "Explain")]

    def __init__(self, tab: Tab) -> None:
        super().__init__(id=f"table-{tab.name}", cursor_type="row", zebra_stripes=True)
        self._columns_of_tab, self._shown = tab.columns, list[Row]()

    def on_mount(self) -> None:
        """Make the columns."""
        self.add_columns(*self._columns_of_tab)

    @property
    def selected(self) -> Row | None:
        """The row under the cursor."""
        return self._shown[self.cursor_row] if 0 <= self.cursor_row < len(self._shown) else None

    def fill(self, rows: Sequence[Row]) -> None:
        """Show these rows. The cursor goes to where its row is now; where that has gone, it stays in its place."""
        before, at, shown = self.selected, self.cursor_row, len(self._shown)
        for place, (old, new) in enumerate(zip(self._shown, rows, strict=False)):
            for column, cell in enumerate(new.cells):
                if old.alarm != new.alarm or old.cells[column] != cell:
                    self.update_cell_at(Coordinate(place, column), _text(new, cell), update_width=True)
        for row in rows[shown:]:
            self.add_row(*(_text(row, cell) for cell in row.cells))
        for _ in range(shown - len(rows)):
            self.remove_row(self.ordered_rows[-1].key)
        self._shown = list(rows)
        now = next((place for place, row in enumerate(rows) if before is not None and row.name == before.name), -1)
        if now not in (-1, at):
            self.move_cursor(row=now, scroll=False)
            self.scroll_to(y=max(0, self.scroll_y + now - at), animate=False)


def _text(row: Row, cell: str) -> Text:
    return Text(cell, style=ALARM if row.alarm else "")
