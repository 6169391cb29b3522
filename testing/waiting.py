"""Waiting for what controllers bring about: woken by every change, never asleep for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from oarlock.testing.running import Running
from oarlock.testing.telling import told
from oarlock.testing.until import Condition, Found
from oarlock.testing.view import Target, View

LOOK_S = 0.1
"""Between two looks where nothing of the kind changes: a condition of the test's own may look at anything."""

Until = Callable[[Any], Any]


class NotInTime(AssertionError):
    """What was waited for did not come about. The text says what there is instead."""


def wait(running: Running, view: View, target: Target, until: Until, count: int | None, timeout_s: float) -> Found:
    """What fulfils ``until``, and where ``count`` is given are so many. Raises NotInTime.

    KeyError, IndexError and TypeError in ``until`` mean "not yet": fields of a status are absent at first.
    """
    __tracebackhide__ = True  # pytest shows the test's own line instead
    ends_s = time.monotonic() + timeout_s
    with view.changes(target) as changed:
        while True:
            changed.clear()
            found = view.read(target)
            missing = _missing(until, found, count)
            if not missing:
                return found
            failure = running.fleet.failure if running.fleet is not None else None
            left_s = ends_s - time.monotonic()
            if failure is not None:
                raise NotInTime(f"the controllers have ended: {type(failure).__name__}: {failure}") from failure
            if left_s <= 0:
                raise NotInTime(told(view, target, until, missing, found, timeout_s))
            changed.wait(min(left_s, LOOK_S))


def _missing(until: Until, found: Found, count: int | None) -> str:
    """What is missing, in words; "" if nothing is."""
    if count is not None and isinstance(found, list) and len(found) != count:
        return f"there are {len(found)}, not {count}"
    if isinstance(until, Condition):
        return until.missing(found)
    if found is None:
        return "it does not exist"
    try:
        answer = until(found)
    except (LookupError, TypeError) as error:
        return f"the condition raised {type(error).__name__}: {error}"
    return "" if answer else f"the condition returned {answer!r}"
