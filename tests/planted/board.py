"""The page of `oarlock board` in a headless Chromium, looked at as a section of docs/troubleshoot.md says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.cli.board.browser import await_that, chromium, shown
from tests.cli.board.running import running_board
from tests.planted.fleet import FAILED
from tests.planted.page import OnBoard

ALL_HAVE_TEXT = """
const found = [...document.querySelectorAll(arguments[0])];
return found.length > 0 && found.every((each) => each.innerText.trim());
"""


class BoardPage:
    """A context manager. One browser with one page; a board for each command, from the first look with it on."""

    def __init__(self, folder: Path, state: Path) -> None:
        self._folder, self._state = folder, state
        self._opened, self._addresses = ExitStack(), dict[str, str]()

    def __enter__(self) -> BoardPage:
        profile = self._opened.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        self._browser = chromium(Path(profile))
        self._opened.callback(self._browser.quit)
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def ask(self, there: OnBoard) -> str:
        """What a person sees on the start page, then on each tab."""
        return self._told(lambda: "\n\n".join([self._start(there.command), *map(self._tab, there.tabs)]))

    def ask_key(self, there: OnBoard) -> str:
        """What the page of the key says about now: its state and the sentences. The turns below are its past, which
        no mend changes.
        """

        def seen() -> str:
            self._start(there.command)
            return self._key(there.key)

        return self._told(seen)

    def _told(self, seen: Callable[[], str]) -> str:
        """A page that is not drawn is no answer: it is told as a command that failed is."""
        try:
            return seen()
        except TimeoutException as error:
            return f"{FAILED} {error.msg}\n{shown(self._browser, 'body')}"

    def _start(self, command: str) -> str:
        if command not in self._addresses:
            log = self._folder / f"board-{len(self._addresses)}.log"
            self._addresses[command] = self._opened.enter_context(running_board(self._state, log, command))
        self._browser.get("about:blank")
        self._browser.get(self._addresses[command])
        return self._drawn("the start page", "#fleet-figures dd, .halves .caption")

    def _tab(self, title: str) -> str:
        tabs = self._browser.find_elements(By.CSS_SELECTOR, "[role=tab]")
        (tab,) = (each for each in tabs if each.text.endswith(title))
        tab.click()
        return self._drawn(f"the tab {title}", ".tab .caption")

    def _key(self, key: str) -> str:
        self._browser.find_element(By.CSS_SELECTOR, "#find input").send_keys(key, Keys.ENTER)
        await_that(self._browser, f"the page of {key} is drawn", lambda: shown(self._browser, ".key .state"))
        if problem := shown(self._browser, ".sentences .alarm"):
            return f"{FAILED} the page of {key}: {problem}"
        return f"{shown(self._browser, '.key h2')}\n{shown(self._browser, '.sentences')}"

    def _drawn(self, what: str, selector: str) -> str:
        """All that is seen, once these have a text and looks arrive."""

        def is_drawn() -> bool:
            live = shown(self._browser, "#live").strip() == "live"
            return live and bool(self._browser.execute_script(ALL_HAVE_TEXT, selector))

        await_that(self._browser, f"{what} is drawn", is_drawn)
        return shown(self._browser, "body").replace("\t", " ")
