"""A function that forks, and whose child comes back from it: there is one worker afterwards, not two."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import oarlock
from oarlock.testing import Cluster

LIMIT_S = 10.0
CHILDREN: list[int] = []
LOCK = threading.Lock()


def fork() -> None:
    """Once, and the child comes back as well. It must not fork in its turn: where it is not ended it is a worker."""
    with LOCK:
        if CHILDREN:
            return
        CHILDREN.append(0)
        CHILDREN[0] = os.fork()


@oarlock.desired("v1 ServiceAccount", name="forking")
def wish(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    fork()
    return oarlock.Result()


@oarlock.steps("v1 ServiceAccount", name="forking")
async def async_steps(obj: dict[str, Any], ctx: oarlock.AsyncContext) -> None:
    await asyncio.sleep(0)
    fork()


@oarlock.steps("v1 ServiceAccount", name="forking")
def raises(obj: dict[str, Any], ctx: oarlock.Context) -> None:
    fork()
    raise oarlock.Never("it has forked")


@pytest.mark.parametrize("controller", [wish, async_steps, raises], ids=["desired", "async", "raises"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_the_child_ends(controller: oarlock.Definition) -> None:
    CHILDREN.clear()
    with Cluster(operator=[controller], controllers="", nodes=0) as cluster:
        cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}})
        until(lambda: bool(CHILDREN and CHILDREN[0]))
        assert ended(CHILDREN[0]) == os.EX_SOFTWARE


def ended(pid: int) -> int:
    """The exit code of a child; one that does not end is killed."""
    try:
        found: list[tuple[int, int]] = []
        until(lambda: bool(found.append(os.waitpid(pid, os.WNOHANG)) or found[-1][0]))
        return os.waitstatus_to_exitcode(found[-1][1])
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return -signal.SIGKILL


def until(met: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + LIMIT_S
    while not met():
        if time.monotonic() > ends_s:
            raise TimeoutError
        time.sleep(0.01)
