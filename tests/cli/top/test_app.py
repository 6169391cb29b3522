"""The terminal of `oarlock top`, played with the keyboard over a fleet that is made up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static, TabbedContent

from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cli.problems import NotDone
from oarlock.cli.top.app import NO_WRITE, Top
from oarlock.cli.top.screens import Page
from oarlock.cli.top.table import Rows
from oarlock.cli.top.tabs import TABS, Task
from oarlock.cli.watch.fleet_look import FleetLook
from tests.cli.cli_helpers import call, problems
from tests.cli.watch.looks import busy

Play = Callable[[Top, Pilot[None]], Awaitable[None]]


class MadeUp:
    """Answers as told; ``gone``: Redis is."""

    def __init__(self) -> None:
        self.gone, self.looks = False, 0
        self.asked: list[tuple[str, str]] = []

    def look(self) -> FleetLook:
        if self.gone:
            raise BrokerUnreachable("connection refused")
        self.looks += 1
        return busy()

    def explain(self, task: Task) -> list[str]:
        self.asked.append(("explain", task.key))
        return [f"all about {task.key}"]

    def requeue(self, task: Task) -> str:
        self.asked.append(("requeue", task.key))
        if task.key == "shop/web":
            raise NotDone(["no"])
        return f"{task.key}: queued"


def play(fleet: MadeUp, of: Play, *, write: bool = False) -> None:
    """No look comes by itself: the interval is longer than any test."""

    async def run() -> None:
        app = Top(fleet, 3_600, write, clock_s=lambda: 12.0)
        async with app.run_test(size=(160, 40)) as pilot:
            await settled(app, pilot)
            await of(app, pilot)

    asyncio.run(run())


async def settled(app: Top, pilot: Pilot[None]) -> None:
    await pilot.pause()
    await app.workers.wait_for_complete()
    await pilot.pause()


async def press(app: Top, pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settled(app, pilot)


def shown(app: Top, name: str) -> list[str]:
    """The rows of a tab, each as one text."""
    table = app.query_one(f"#table-{name}", Rows)
    return [" ".join(str(cell) for cell in table.get_row_at(at)) for at in range(table.row_count)]


def head(app: Top) -> str:
    return str(app.query_one("#head", Static).render())


def notices(app: Top) -> list[str]:
    return [each.message for each in app._notifications]


def test_the_head_and_the_keys_are_there_at_once() -> None:
    async def of(app: Top, pilot: Pilot[None]) -> None:
        assert "epoch 7" in head(app)
        assert any("shop/cart" in row for row in shown(app, TABS[0].name))

    play(MadeUp(), of)


def test_each_tab_has_a_number_and_its_rows() -> None:
    async def of(app: Top, pilot: Pilot[None]) -> None:
        for number, tab in enumerate(TABS, 1):
            await press(app, pilot, str(number))
            assert app.query_one(TabbedContent).active == tab.name
            assert len(shown(app, tab.name)) == len(list(tab.rows(busy()))) > 0
        await press(app, pilot, "tab")
        assert app.query_one(TabbedContent).active == TABS[0].name
        await press(app, pilot, "shift+tab")
        assert app.query_one(TabbedContent).active == TABS[-1].name

    play(MadeUp(), of)


def test_a_filter_leaves_the_rows_that_have_the_words() -> None:
    async def of(app: Top, pilot: Pilot[None]) -> None:
        every = shown(app, TABS[0].name)
        await press(app, pilot, "slash", *"batch", "enter")
        rows = shown(app, TABS[0].name)
        assert rows
        assert all("batch" in row for row in rows)
        assert len(rows) < len(every)
        await press(app, pilot, "escape")
        assert (shown(app, TABS[0].name), app.query_one("#filter", Input).display) == (every, False)

    play(MadeUp(), of)


def test_help_and_explain_are_pages() -> None:
    fleet = MadeUp()

    async def of(app: Top, pilot: Pilot[None]) -> None:
        await press(app, pilot, "question_mark")
        assert isinstance(app.screen, Page)
        await press(app, pilot, "escape")
        assert not isinstance(app.screen, Page)
        await press(app, pilot, "enter")
        assert isinstance(app.screen, Page)

    play(fleet, of)
    ((act, key),) = fleet.asked
    assert act == "explain"
    assert key.startswith(("shop/", "batch/"))


def test_nothing_is_changed_without_write() -> None:
    fleet = MadeUp()

    async def of(app: Top, pilot: Pilot[None]) -> None:
        await press(app, pilot, "R")
        assert notices(app) == [NO_WRITE]

    play(fleet, of)
    assert fleet.asked == []


def test_with_write_a_key_is_requeued_and_looked_at() -> None:
    fleet = MadeUp()

    async def of(app: Top, pilot: Pilot[None]) -> None:
        looks = fleet.looks
        await press(app, pilot, "R")
        assert len(fleet.asked) == 1
        assert fleet.looks == looks + 1
        assert len(notices(app)) == 1

    play(fleet, of, write=True)
    assert fleet.asked[0][0] == "requeue"


def test_while_redis_is_gone_the_last_look_stays() -> None:
    fleet = MadeUp()

    async def of(app: Top, pilot: Pilot[None]) -> None:
        rows = shown(app, TABS[0].name)
        fleet.gone = True
        await press(app, pilot, "r")
        assert "Redis does not answer (connection refused); what is shown is 2.0s old" in head(app)
        assert shown(app, TABS[0].name) == rows
        fleet.gone = False
        await press(app, pilot, "r")
        assert "does not answer" not in head(app)

    play(fleet, of)


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_pipe_gets_one_look_only(output: str) -> None:
    result = call("top", "-o", output, "--redis", "redis://127.0.0.1:1/0")
    assert result.exit_code == 2
    (line,) = problems(result)
    assert ("this is no terminal" in line) is (output == "table")
