"""A headless Chromium of Debian's, driven by selenium."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.common.exceptions import JavascriptException, StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
WITHIN_S = 15.0
MISSING = (
    "" if CHROMIUM and DRIVER else "Chromium or chromedriver is not installed; on Debian: chromium, chromium-driver"
)
"""Why there is no browser; "" where there is one."""


def chromium(profile: Path, width: int = 1400, height: int = 1000, *, dark: bool = False) -> Chrome:
    """A new browser with an empty profile."""
    assert CHROMIUM
    assert DRIVER
    options = Options()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=Service(DRIVER))
    prefer(browser, "dark" if dark else "light")
    return browser


def prefer(browser: Chrome, scheme: str) -> None:
    """What the system is said to prefer: light or dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def resize(browser: Chrome, width: int, height: int) -> None:
    """The size of what a page has, not of the window."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def press(browser: Chrome, *keys: str) -> None:
    """Type, wherever the focus is."""
    for key in keys:
        ActionChains(browser).send_keys(key).perform()


def await_that(browser: Chrome, what: str, condition: Callable[[], Any]) -> Any:
    """Until it is so. A page that is just being drawn anew is asked again."""
    wait = WebDriverWait(browser, WITHIN_S, 0.05, (JavascriptException, StaleElementReferenceException))
    return wait.until(lambda _: condition(), f"not so within {WITHIN_S:.0f} s: {what}")


def shown(browser: Chrome, selector: str) -> str:
    """The text that a person sees there; "" where there is no such element."""
    found = browser.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)
    return str(found)


def complaints(browser: Chrome) -> list[str]:
    """What the browser has complained about since it was last asked: errors of scripts, and what the policy refused."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
