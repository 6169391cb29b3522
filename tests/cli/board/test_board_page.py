"""The page in a real browser: each view, the keyboard, both looks, hostile names, and a server that comes back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from oarlock.cli.top.tabs import TABS
from oarlock.sandbox.host import free_port
from tests.cli.board import browser as driven
from tests.cli.board.browser import await_that, complaints, press, shown
from tests.cli.board.made_up import TOKEN, MadeUp, serving
from tests.cli.watch.looks import QUEUE

HOSTILE = "shop/<img src=x onerror=document.title='taken'>\"'&amp;</script><script>document.title='taken'</script>"

pytestmark = pytest.mark.skipif(bool(driven.MISSING) and not os.environ.get("CI"), reason=driven.MISSING)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    made = driven.chromium(tmp_path_factory.mktemp("profile"))
    yield made
    made.quit()


def visit(browser: Chrome, address: str, route: str = "") -> None:
    """The page anew, once it has drawn what it was sent."""
    browser.get("about:blank")
    complaints(browser)
    browser.get(address + route)
    await_that(browser, "the page is drawn", lambda: "7 OPEN" in shown(browser, "#fleet-figures"))


def text(browser: Chrome) -> str:
    return shown(browser, "body")


def await_text(browser: Chrome, *said: str, within: str = "body") -> None:
    """Until the page says all of this in that part of it."""
    await_that(browser, f"{within} says {said}", lambda: all(each in shown(browser, within) for each in said))


def at(browser: Chrome) -> str:
    return urlsplit(browser.current_url).fragment


def test_the_start_says_what_is_wrong_and_draws_what_goes_on(browser: Chrome) -> None:
    fleet = MadeUp()
    with serving(fleet) as address:
        visit(browser, address)
        await_that(browser, "the lists are there", lambda: "shop/bad" in text(browser) and "batch" in text(browser))
        await_text(browser, "queued\n2", "ValueError: no [bold]size", "75.0%", "w-1\n1\n", "2 workers and")
        plots = "return [...document.querySelectorAll('.plots canvas')].map(each => each.getContext('2d')" + (
            ".getImageData(0, 0, each.width, each.height).data.some(value => value > 0))"
        )
        await_that(browser, "the plots are drawn", lambda: browser.execute_script(plots) == [True] * 4)
        assert shown(browser, "#live") == "live"
        assert complaints(browser) == []


def test_each_tab_by_its_number(browser: Chrome) -> None:
    with serving(MadeUp()) as address:
        visit(browser, address)
        for number, tab in enumerate(TABS, 1):
            press(browser, str(number))
            await_text(browser, tab.title, within=".tab h2")
            await_that(browser, f"tab {tab.name} is drawn", lambda: shown(browser, "tbody tr"))
            assert shown(browser, "[role=tab][aria-selected=true]").endswith(tab.title)
            assert shown(browser, "thead").strip().split("\t") == list(tab.columns)
        press(browser, "0")
        await_that(browser, "the overview is drawn", lambda: "Who fills the queue" in text(browser))
        assert complaints(browser) == []


def test_rows_a_key_and_back_by_the_keyboard(browser: Chrome) -> None:
    fleet = MadeUp()
    with serving(fleet) as address:
        visit(browser, address, "#/keys")
        await_that(browser, "the rows are there", lambda: "batch/later" in text(browser))
        press(browser, "j", "j", "k", Keys.ARROW_DOWN)
        assert "shop/web" in shown(browser, "tr[aria-selected=true]")
        press(browser, Keys.ENTER)
        await_that(browser, "the page of the key is drawn", lambda: "All is as it should be." in text(browser))
        assert at(browser) == f"/key/0/{QUEUE}/shop%2Fweb"
        await_text(browser, "Its life", "retry x3", "web-5d", "2 pods are to come", "1 none")
        await_text(browser, "somebody asked for it", "ValueError")
        press(browser, "R")
        await_that(browser, "it is refused", lambda: "start it with --write" in shown(browser, "#said"))
        press(browser, Keys.ESCAPE)
        await_that(browser, "the keys are back", lambda: at(browser) == "/keys" and "batch/later" in text(browser))
        press(browser, "?")
        await_that(browser, "help is there", lambda: "Go to a key by its name" in text(browser))
        press(browser, Keys.ESCAPE, "g", *"shop/cart", Keys.ENTER)
        await_that(browser, "the key was found", lambda: at(browser) == f"/key/0/{QUEUE}/shop%2Fcart")
        assert complaints(browser) == []
    assert not [each for each in fleet.asked if each[0] == "requeue"]


def test_the_cursor_stays_on_its_row_while_rows_change(browser: Chrome) -> None:
    fleet = MadeUp()
    fleet.ages = True
    with serving(fleet) as address:
        visit(browser, address, "#/keys")
        await_that(browser, "the rows are there", lambda: "batch/later" in text(browser))
        press(browser, "j", "j", "j")
        before = shown(browser, "tbody tr td.c-age")
        browser.execute_script("document.querySelector('tr[aria-selected=true]').marked = true")
        await_that(browser, "another look is drawn", lambda: shown(browser, "tbody tr td.c-age") != before)
        assert "batch/crunch" in shown(browser, "tr[aria-selected=true]")
        assert browser.execute_script("return document.querySelector('tr[aria-selected=true]').marked")


def test_a_filter(browser: Chrome) -> None:
    with serving(MadeUp()) as address:
        visit(browser, address, "#/keys")
        await_that(browser, "the rows are there", lambda: "batch/later" in text(browser))
        press(browser, "/", *"batch delayed", Keys.ENTER)
        await_that(browser, "one row is left", lambda: shown(browser, "tbody").count("batch/") == 1)
        await_text(browser, "the filter leaves 1 rows")
        press(browser, "/", Keys.ESCAPE)
        await_that(browser, "all rows are back", lambda: "shop/web" in shown(browser, "tbody"))


def test_both_looks_and_the_switch(browser: Chrome) -> None:
    def background() -> str:
        found = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return str(found)

    with serving(MadeUp()) as address:
        try:
            seen = []
            for scheme in ("dark", "light"):
                driven.prefer(browser, scheme)
                visit(browser, address)
                seen.append(background())
            assert seen[0] != seen[1]
            press(browser, "t")
            await_that(browser, "it is dark", lambda: background() == seen[0])
            visit(browser, address)
            assert background() == seen[0]
            assert complaints(browser) == []
        finally:
            browser.execute_script("localStorage.clear()")


@pytest.mark.parametrize("width", [380, 1600])
def test_no_page_is_wider_than_its_window(browser: Chrome, width: int) -> None:
    with serving(MadeUp(HOSTILE)) as address:
        driven.resize(browser, width, 900)
        try:
            for route in ("", *(f"#/{tab.name}" for tab in TABS), f"#/key/0/{QUEUE}/shop%2Fweb"):
                visit(browser, address, route)
                await_that(browser, f"{route} is drawn", lambda: shown(browser, "main"))
                wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, route
        finally:
            driven.resize(browser, 1400, 1000)


def test_hostile_names_are_text(browser: Chrome) -> None:
    with serving(MadeUp(HOSTILE)) as address:
        for route in ("", *(f"#/{tab.name}" for tab in TABS)):
            visit(browser, address, route)
            await_that(browser, f"{route} is drawn", lambda: shown(browser, "main"))
            await_text(browser, HOSTILE, within="#problems")
        visit(browser, address, "#/keys")
        link = "[...document.querySelectorAll('td.c-key a')].find(each => each.textContent.includes('img'))"
        await_that(browser, "the rows are there", lambda: browser.execute_script(f"return {link} !== undefined"))
        browser.execute_script(f"{link}.click()")
        await_text(browser, HOSTILE, within=".sentences")
        await_text(browser, HOSTILE, within=".key h2")
        assert browser.execute_script("return document.querySelectorAll('main img, main script').length") == 0
        assert browser.title != "taken"
        assert complaints(browser) == []


def test_below_a_path(browser: Chrome) -> None:
    with serving(MadeUp(), prefix="/ops/oarlock") as address:
        visit(browser, address, "#/workers")
        await_that(browser, "the rows are there", lambda: "w-1-2" in text(browser))
        assert complaints(browser) == []


def test_the_page_comes_back_with_its_server(browser: Chrome) -> None:
    fleet = MadeUp()
    port = free_port()
    with serving(fleet, port) as address:
        visit(browser, address, "#/keys")
        await_text(browser, "shop/cart")
    await_that(browser, "it says that it is lost", lambda: "live" not in shown(browser, "#live"))
    assert "shop/cart" in text(browser)
    with serving(fleet, port):
        await_that(browser, "it is live again", lambda: shown(browser, "#live") == "live")
        fleet.gone = True
        await_that(
            browser, "it says that Redis is lost", lambda: "Redis does not answer" in shown(browser, "#problems")
        )
        fleet.gone = False
        await_that(browser, "Redis is back", lambda: not shown(browser, "#problems"))


def give(browser: Chrome, token: str) -> None:
    await_that(browser, "the token is asked for", lambda: shown(browser, "#token-dialog[open]"))
    press(browser, *token, Keys.ENTER)
    await_that(browser, "it was taken", lambda: not shown(browser, "#token-dialog[open] input") or True)


def test_with_a_token_the_page_asks_and_may_write(browser: Chrome) -> None:
    fleet: Any = MadeUp()
    with serving(fleet, write=True, token=TOKEN) as address:
        browser.get("about:blank")
        browser.get(address + f"#/key/0/{QUEUE}/shop%2Fweb")
        give(browser, "wrong-wrong-wrong")
        await_that(browser, "the token is refused", lambda: "7 OPEN" not in text(browser))
        give(browser, TOKEN)
        await_that(browser, "the page is drawn", lambda: "7 OPEN" in text(browser) and "Requeue" in text(browser))
        press(browser, "R")
        await_that(browser, "it is queued", lambda: "shop/web: queued" in shown(browser, "#said"))
        assert browser.get_cookies() == []
        browser.refresh()
        await_that(browser, "it is asked no more", lambda: "7 OPEN" in text(browser))
        browser.execute_script("sessionStorage.clear()")
    assert ("requeue", "shop/web", "board", "from 127.0.0.1") in fleet.asked


def test_a_page_that_is_left_gives_its_connection_back(browser: Chrome) -> None:
    fleet = MadeUp()
    with serving(fleet) as address:
        for _ in range(8):  # a browser has six for a server
            visit(browser, address)
        browser.get("about:blank")
        assert fleet.board is not None
        hub = fleet.board.hub
        await_that(browser, "nobody watches", lambda: hub.watching == 0)
