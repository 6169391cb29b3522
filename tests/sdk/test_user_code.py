"""Functions of users beside the worker's thread: they and their turns take turns, whatever becomes of either."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

import pytest

from oarlock.controllers.requests import ApiError, Ended, Get, LostClaim, StillMine
from oarlock.workers.turn.engine.user_code import Run, StillRuns, UserCode

LIMIT_S = 10.0
GET = Get("configmaps.v1", "shop", "web")


@pytest.fixture
def code() -> Iterator[UserCode]:
    made = UserCode(threads_max=2)
    yield made
    made.close()


def ended(asked: Future[Any]) -> BaseException | None:
    """What the function raised, now that it has ended."""
    came = asked.result(LIMIT_S)
    assert isinstance(came, Ended), came
    return came.error


def both(sync: Callable[[Any], Any]) -> tuple[Callable[[Run], Any], Callable[[Run], Any]]:
    """The same function, sync and async. It is given a way to ask: `sync(ask)`, a generator of requests."""

    def plain(run: Run) -> None:
        steps, answer = sync(run), None
        try:
            while True:
                request = steps.send(answer)
                try:
                    answer = run.ask(request)
                except Exception as error:
                    answer = error
        except StopIteration:
            pass

    async def awaited(run: Run) -> None:
        steps, answer = sync(run), None
        try:
            while True:
                request = steps.send(answer)
                try:
                    answer = await run.ask_later(request)
                except Exception as error:
                    answer = error
        except StopIteration:
            pass

    return plain, awaited


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_requests_cross_as_values_and_so_do_answers(code: UserCode, is_async: bool) -> None:
    got = []

    def function(run: Run) -> Iterator[Any]:
        got.append((yield GET))
        got.append((yield StillMine()))

    run = code.run(both(function)[is_async], is_async=is_async)
    assert run.resume().result(LIMIT_S) == GET
    assert run.resume(b"{}").result(LIMIT_S) == StillMine()
    assert ended(run.resume(None)) is None
    assert got == [b"{}", None]


def test_an_answer_that_is_an_exception_is_raised(code: UserCode, is_async: bool) -> None:
    got = []

    def function(run: Run) -> Iterator[Any]:
        got.append((yield GET))

    run = code.run(both(function)[is_async], is_async=is_async)
    run.resume().result(LIMIT_S)
    refused = ApiError(409, "it has changed")
    assert ended(run.resume(refused)) is None
    assert got == [refused]


@pytest.mark.parametrize("error", [KeyError("spec"), SystemExit(3), asyncio.CancelledError()], ids=repr)
def test_what_a_function_raises_is_its_end(code: UserCode, is_async: bool, error: BaseException) -> None:
    def plain(run: Run) -> None:
        raise error

    async def awaited(run: Run) -> None:
        raise error

    run = code.run(awaited if is_async else plain, is_async=is_async)
    assert type(ended(run.resume())) is type(error)
    another = code.run(both(lambda run: iter(()))[0] if not is_async else awaited, is_async=is_async)
    assert isinstance(another.resume().result(LIMIT_S), Ended)  # the pool and the loop live on


@pytest.mark.parametrize("error", [SystemExit("no such zone"), KeyboardInterrupt()], ids=repr)
def test_what_a_task_of_an_async_function_raises_is_its_end(code: UserCode, error: BaseException) -> None:
    async def part() -> None:
        raise error

    async def function(run: Run) -> None:
        await asyncio.gather(part(), run.ask_later(GET))

    async def asks(run: Run) -> None:
        await run.ask_later(GET)

    run = code.run(function, is_async=True)
    asked = run.resume()
    while asked.result(LIMIT_S) == GET:
        assert run.over.wait(LIMIT_S)
        asked = run.resume()
    assert ended(asked) is error
    assert code.run(asks, is_async=True).resume().result(LIMIT_S) == GET  # the loop lives on


def test_once_abandoned_each_further_request_raises_lost_claim(code: UserCode, is_async: bool) -> None:
    got, over = [], threading.Event()

    def function(run: Run) -> Iterator[Any]:
        got.append((yield GET))
        got.append((yield GET))
        over.set()

    run = code.run(both(function)[is_async], is_async=is_async)
    run.resume().result(LIMIT_S)
    run.abandon()
    run.abandon()
    assert over.wait(LIMIT_S)
    assert [type(each) for each in got] == [LostClaim, LostClaim]


def test_a_function_that_computes_while_it_is_abandoned_hears_of_it_when_it_asks(code: UserCode) -> None:
    go, heard = threading.Event(), Future[BaseException]()

    def function(run: Run) -> None:
        go.wait(LIMIT_S)
        try:
            run.ask(GET)
        except LostClaim as lost:
            heard.set_result(lost)

    run = code.run(function, is_async=False)
    waited = run.resume()
    waited.cancel()  # as the runner does with what an abandoned turn waits for
    run.abandon()
    go.set()
    assert isinstance(heard.result(LIMIT_S), LostClaim)


def test_a_future_that_was_cancelled_alone_takes_nothing(code: UserCode) -> None:
    go, heard = threading.Event(), Future[BaseException]()

    def function(run: Run) -> None:
        go.wait(LIMIT_S)
        try:
            run.ask(GET)
        except LostClaim as lost:
            heard.set_result(lost)

    run = code.run(function, is_async=False)
    run.resume().cancel()
    go.set()
    assert isinstance(heard.result(LIMIT_S), LostClaim)


def test_an_async_function_that_awaits_something_else_is_cancelled(code: UserCode) -> None:
    heard, begun = Future[str](), threading.Event()

    async def function(run: Run) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                await run.ask_later(GET)
            except LostClaim:
                heard.set_result("cancelled, then lost")

    run = code.run(function, is_async=True)
    run.resume()
    assert begun.wait(LIMIT_S)
    run.abandon()
    assert heard.result(LIMIT_S) == "cancelled, then lost"


def test_more_functions_than_threads_wait_and_an_abandoned_one_of_them_never_begins(code: UserCode) -> None:
    go, begun = threading.Event(), []

    def blocks(run: Run) -> None:
        go.wait(LIMIT_S)

    def notes(name: str) -> Callable[[Run], None]:
        return lambda run: begun.append(name)

    blocking = [code.run(blocks, is_async=False).resume() for _ in range(2)]
    given_up, third = code.run(notes("given up"), is_async=False), code.run(notes("third"), is_async=False)
    given_up.resume()
    waits = third.resume()
    given_up.abandon()
    assert not waits.done()
    go.set()
    assert [ended(each) for each in (*blocking, waits)] == [None, None, None]
    assert begun == ["third"]


def test_threads_are_used_again(code: UserCode) -> None:
    names = set()

    def notes(run: Run) -> None:
        names.add(threading.current_thread().name)

    for _ in range(20):
        assert ended(code.run(notes, is_async=False).resume()) is None
    assert len(names) <= 2


def test_tasks_of_one_async_function_ask_one_after_the_other(code: UserCode) -> None:
    got = []

    async def function(run: Run) -> None:
        got.extend(await asyncio.gather(*(run.ask_later(GET) for _ in range(5))))

    run = code.run(function, is_async=True)
    asked = run.resume()
    for number in range(5):
        assert asked.result(LIMIT_S) == GET
        asked = run.resume(number)
    assert ended(asked) is None
    assert sorted(got) == [0, 1, 2, 3, 4]


def test_asking_the_wrong_way_is_said(code: UserCode) -> None:
    async def awaited(run: Run) -> None:
        run.ask(GET)

    def plain(run: Run) -> None:
        asyncio.run(run.ask_later(GET))

    for call, is_async in ((awaited, True), (plain, False)):
        error = ended(code.run(call, is_async=is_async).resume())
        assert isinstance(error, TypeError)
        assert "await" in str(error)


def test_a_task_that_is_cancelled_while_it_asks_is_no_lost_claim(code: UserCode) -> None:
    """`asyncio.wait_for(ctx.get(...), 1)`: the turn is still at work on that, and takes the next request after it."""
    cancelled = threading.Event()

    async def function(run: Run) -> None:
        first = asyncio.create_task(run.ask_later(GET))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        cancelled.set()
        assert await run.ask_later(StillMine()) == "second"

    run = code.run(function, is_async=True)
    assert run.resume().result(LIMIT_S) == GET
    assert cancelled.wait(LIMIT_S)
    assert run.resume("first").result(LIMIT_S) == StillMine()
    assert ended(run.resume("second")) is None


def test_an_end_while_a_request_is_carried_out_is_heard_with_its_answer(code: UserCode, is_async: bool) -> None:
    """A task group that fails while one of its tasks asks; a thread of the function that outlives it."""
    asked_it = threading.Event()

    async def awaited(run: Run) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run.ask_later(GET))
            while not asked_it.is_set():
                await asyncio.sleep(0)
            raise KeyError("what was looked for")

    def plain(run: Run) -> None:
        threading.Thread(target=run.ask, args=(GET,), daemon=True).start()
        asked_it.wait(LIMIT_S)
        raise KeyError("what was looked for")

    run = code.run(awaited if is_async else plain, is_async=is_async)
    assert run.resume().result(LIMIT_S) == GET
    asked_it.set()
    assert run.over.wait(LIMIT_S)
    assert ended(run.resume(b"{}")) is not None


def test_a_function_that_blocks_never_has_another_behind_it_while_there_may_be_a_further_thread() -> None:
    code = UserCode(threads_max=200)
    go, interval_s = threading.Event(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # a thread that is about to be idle is overtaken
    try:
        for _ in range(60):
            quick = code.run(lambda run: None, is_async=False)
            begun = [threading.Event(), threading.Event()]
            waits = [quick.resume()]
            for each in begun:
                waits.append(code.run(lambda run, each=each: each.set() or go.wait(LIMIT_S), is_async=False).resume())
            assert all(each.wait(LIMIT_S / 2) for each in begun)
        go.set()
        assert [ended(each) for each in waits] == [None] * 3
    finally:
        sys.setswitchinterval(interval_s)
        go.set()
        code.close()


class Object(NamedTuple):
    uid: str
    key: str


def test_no_second_run_over_an_object_while_one_that_was_given_up_goes_on(code: UserCode) -> None:
    go = threading.Event()

    def blocks(own: Any, run: Run) -> None:
        go.wait(LIMIT_S)

    start = code.starter(Function("site", "site", blocks, False, blocks, False))  # type: ignore[arg-type]
    first = start(Object("1", "shop/web"), False)  # type: ignore[arg-type]
    first.resume()
    first.abandon()
    with pytest.raises(StillRuns, match="the function of site over shop/web was given up"):
        start(Object("1", "shop/web"), True)  # type: ignore[arg-type]
    other = start(Object("2", "shop/db"), False)  # type: ignore[arg-type]
    asked = other.resume()
    go.set()
    assert ended(asked) is None
    assert first.over.wait(LIMIT_S)
    assert ended(start(Object("1", "shop/web"), True).resume()) is None  # type: ignore[arg-type]


class Function(NamedTuple):
    name: str
    queue: str
    run: Callable[[Any, Run], Any]
    is_async: bool
    undo: Callable[[Any, Run], Any]
    undo_is_async: bool
