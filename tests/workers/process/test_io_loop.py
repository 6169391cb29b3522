"""The main thread waits where a signal's exception reaches it; what it waited for is cancelled."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any

import pytest

from oarlock.workers.process.io_loop import LOOK_UP_S, IoLoop

PATIENCE_S = 10.0


@pytest.fixture
def io() -> Iterator[IoLoop]:
    loop = IoLoop()
    yield loop
    loop.close()


class PenaltyError(Exception):
    """What the death penalty's handler raises."""


@pytest.fixture
def penalty() -> Iterator[None]:
    """SIGUSR1 raises in the main thread."""

    def handler(number: int, frame: FrameType | None) -> None:
        raise PenaltyError

    before = signal.signal(signal.SIGUSR1, handler)
    yield
    signal.signal(signal.SIGUSR1, before)


class Sleeper:
    """Coroutines that never end by themselves, and what became of them."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.cancelled = threading.Semaphore(0)

    async def sleep(self, *, kill: bool = False) -> None:
        try:
            self.began.set()
            if kill:
                os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.release()
            raise

    async def several(self, count: int) -> None:
        await asyncio.gather(*(self.sleep(kill=number == count - 1) for number in range(count)))


def test_the_result_comes_back(io: IoLoop) -> None:
    async def answer() -> tuple[int, str]:
        await asyncio.sleep(0)
        return 42, threading.current_thread().name

    assert io.run(answer()) == (42, "io")


def test_the_exception_comes_back(io: IoLoop) -> None:
    async def fail() -> None:
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        io.run(fail())


@pytest.mark.usefixtures("penalty")
def test_a_signals_exception_reaches_the_main_thread(io: IoLoop) -> None:
    sleeper = Sleeper()
    with pytest.raises(PenaltyError):
        io.run(sleeper.sleep(kill=True))
    assert sleeper.cancelled.acquire(timeout=PATIENCE_S), "what it waited for was cancelled"


@pytest.mark.usefixtures("penalty")
def test_requests_under_way_are_all_cancelled(io: IoLoop) -> None:
    sleeper = Sleeper()
    with pytest.raises(PenaltyError):
        io.run(sleeper.several(5))
    assert all(sleeper.cancelled.acquire(timeout=PATIENCE_S) for _ in range(5))


@pytest.mark.usefixtures("penalty")
def test_it_goes_on_afterwards(io: IoLoop) -> None:
    """Ten in a row: none is lost, none is raised twice, and the loop serves the next."""
    for number in range(10):
        sleeper = Sleeper()
        with pytest.raises(PenaltyError):
            io.run(sleeper.sleep(kill=True))
        assert sleeper.cancelled.acquire(timeout=PATIENCE_S)
        assert io.run(asyncio.sleep(0, number)) == number


@pytest.mark.usefixtures("penalty")
def test_a_signal_just_before_the_waiting_begins(io: IoLoop) -> None:
    """It interrupts nothing, for nothing is waited for yet: still it is not left until the coroutine ends."""
    longest_s = 0.0
    for _ in range(10):
        begun_s = time.monotonic()
        with pytest.raises(PenaltyError):
            io.run(Sleeper().sleep(kill=True), timeout_s=PATIENCE_S)
        longest_s = max(longest_s, time.monotonic() - begun_s)
    assert longest_s < PATIENCE_S / 2


def test_a_timeout_of_its_own_is_told_from_ours(io: IoLoop) -> None:
    async def give_up() -> None:
        raise TimeoutError("its own")

    begun_s = time.monotonic()
    with pytest.raises(TimeoutError, match="its own"):
        io.run(give_up(), timeout_s=PATIENCE_S)
    assert time.monotonic() - begun_s < PATIENCE_S / 2, "at once"


def test_longer_than_a_look(io: IoLoop) -> None:
    assert io.run(asyncio.sleep(2.5 * LOOK_UP_S, "done")) == "done"
    assert io.run(asyncio.sleep(1.5 * LOOK_UP_S, "done"), timeout_s=PATIENCE_S) == "done"


def test_a_timeout_cancels(io: IoLoop) -> None:
    sleeper = Sleeper()
    while not sleeper.began.is_set():  # on a busy machine it may be cancelled before it begins
        with pytest.raises(TimeoutError):
            io.run(sleeper.sleep(), timeout_s=0.02)
    assert sleeper.cancelled.acquire(timeout=PATIENCE_S)


def test_tasks_may_outlive_a_call(io: IoLoop) -> None:
    sleeper = Sleeper()

    async def start() -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(sleeper.sleep())

    task = io.run(start())
    assert sleeper.began.wait(PATIENCE_S)
    assert not task.done()
    io.loop.call_soon_threadsafe(task.cancel)
    assert sleeper.cancelled.acquire(timeout=PATIENCE_S)


def test_closing_ends_its_thread() -> None:
    """What is asked of it afterwards is refused at once, and does not wait for ever."""
    before = set(threading.enumerate())
    io = IoLoop()
    (thread,) = set(threading.enumerate()) - before
    assert (thread.name, thread.daemon) == ("io", True)
    io.close()
    assert not thread.is_alive()
    late = asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="closed"):
        io.run(late)
    late.close()


async def leaves(error: BaseException) -> None:
    raise error


async def gathers(error: BaseException) -> None:
    await asyncio.gather(leaves(error), asyncio.sleep(PATIENCE_S))


async def groups(error: BaseException) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(leaves(error))
        group.create_task(asyncio.sleep(PATIENCE_S))


@pytest.mark.parametrize("error", [SystemExit("no such zone"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("parent", [gathers, groups])
def test_a_task_that_would_exit_ends_its_parent_and_not_the_loop(
    io: IoLoop, parent: Callable[[BaseException], Coroutine[Any, Any, None]], error: BaseException
) -> None:
    async def told() -> str:
        try:
            await parent(error)
        except BaseException as raised:
            return repr(raised)
        return ""

    for number in range(3):
        assert io.run(told(), timeout_s=PATIENCE_S) == repr(error)
        assert io.run(asyncio.sleep(0, number), timeout_s=PATIENCE_S) == number


def test_a_loop_that_a_task_stops_goes_on(io: IoLoop) -> None:
    io.loop.call_soon_threadsafe(io.loop.stop)
    assert io.run(asyncio.sleep(LOOK_UP_S, "done"), timeout_s=PATIENCE_S) == "done"
