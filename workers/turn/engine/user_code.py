"""Runs functions of users beside the worker's thread: sync ones on a bounded pool of threads, async ones on one loop.

A run and its turn take turns: the function goes on until it asks something or ends. It then waits until the turn
resumes it with the answer. The turn waits for that as it waits for the API: the worker goes on with others meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any

from oarlock.controllers.entries import StepsController
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.requests import Asked, Ended, LostClaim, Request
from oarlock.workers.process.fork import ending_what_is_forked
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.tracing.tracer import current_turn

THREADS = 32
"""As many as a worker has turns at once. A function that hangs keeps its thread, so there may be none left: then turns
wait for one, and end at their limit."""
RUNS_KEPT = 4 * THREADS
"""Runs that are remembered until those that have ended are looked for."""
LOST = "the turn is over: its claim was lost, or its time was up"


class StillRuns(Exception):
    """An earlier run over the same object was given up, and has not ended."""


class Run:
    """One call of a function. ``resume`` and ``abandon``: the turn's. The rest is the function's.

    ``resume`` may be called again only when the Future of the last call is done.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn: Future[Asked] | None = None
        """What the turn waits for; None while it does not: then nothing is taken from the function."""
        self._begun = self._lost = False
        self._came: Ended | None = None
        """Its end, if it came while the turn did not wait: a task or thread of the function had asked something."""
        self.over = threading.Event()
        """Set when the function has ended, though its turn may have long before."""

    # -- the turn's side -----------------------------------------------------------------------------------------------

    def resume(self, answer: Any = None) -> Future[Asked]:
        """Let the function go on, the first time from its beginning. The Future: what it asks next, or its end."""
        waits_for: Future[Asked] = Future()
        with self._lock:
            end, begun, self._begun = self._came, self._begun, True
            self._turn = waits_for if end is None else None
        if end is not None:
            waits_for.set_result(end)
        elif begun:
            self._answer(answer)
        else:
            self._begin()
        return waits_for

    def abandon(self) -> None:
        """The turn is over. Whatever the function asks from now on raises LostClaim. May be called twice."""
        with self._lock:
            self._turn, lost, self._lost = None, self._lost, True
        if not lost:
            self._lose()

    # -- the function's side -------------------------------------------------------------------------------------------

    def _give(self, asked: Asked) -> bool:
        """Hand over to the turn. False: it is over, or it carries out something else."""
        with self._lock:
            waits_for, self._turn = self._turn, None
            if waits_for is None and isinstance(asked, Ended):
                self._came = asked
        if waits_for is None or not waits_for.set_running_or_notify_cancel():
            return False
        waits_for.set_result(asked)
        return True

    def ask(self, request: Request) -> Any:
        raise TypeError("an async controller's ctx is awaited, on the event loop that its function runs on")

    async def ask_later(self, request: Request) -> Any:
        raise TypeError("the ctx of a function that is not async is not awaited")

    def _begin(self) -> None:
        raise NotImplementedError

    def _answer(self, answer: Any) -> None:
        raise NotImplementedError

    def _lose(self) -> None:
        raise NotImplementedError


class ThreadRun(Run):
    """Of a sync function. It blocks its thread while the turn carries out what it asked."""

    def __init__(self, call: Callable[[Run], Any], submit: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self._call, self._submit = call, submit
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._asking = threading.Lock()

    def ask(self, request: Request) -> Any:
        with self._asking:  # the function may have threads of its own
            if not self._give(request):
                raise LostClaim(LOST)
            answer = self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _begin(self) -> None:
        self._submit(self._run)

    def _run(self) -> None:
        if self._lost:
            self.over.set()
            return  # it waited for a thread for so long
        error: BaseException | None = None
        try:
            with current_turn.get().function(), ending_what_is_forked():
                self._call(self)
        except BaseException as raised:  # SystemExit too: it must not end a thread of the pool
            error = raised
        self.over.set()
        self._give(Ended(error))

    def _answer(self, answer: Any) -> None:
        self._answers.put(answer)

    def _lose(self) -> None:
        self._answers.put(LostClaim(LOST))


class LoopRun(Run):
    """Of an async function. If it is abandoned while it awaits something of its own, that is cancelled."""

    def __init__(self, call: Callable[[Run], Any], io: IoLoop) -> None:
        super().__init__()
        self._call, self._io = call, io
        self._task: asyncio.Task[None] | None = None
        self._waiting: asyncio.Future[Any] | None = None
        self._asking = asyncio.Lock()

    async def ask_later(self, request: Request) -> Any:
        await self._asking.acquire()  # the function may ask from several tasks of its own
        waiting = self._waiting = asyncio.get_running_loop().create_future()
        try:
            if not self._give(request):
                waiting.cancel()
                raise LostClaim(LOST)
            return await asyncio.shield(waiting)
        finally:
            if waiting.done():
                self._asking.release()
            else:  # its task was cancelled, and the turn is still at work on it: others ask after that
                waiting.add_done_callback(lambda _: self._asking.release())

    def _begin(self) -> None:
        self._io.submit(self._run())

    async def _run(self) -> None:
        if self._lost:
            self.over.set()
            return
        error: BaseException | None = None
        try:
            self._task = asyncio.current_task()
            with current_turn.get().function(), ending_what_is_forked():
                await self._call(self)
        except BaseException as raised:
            error = raised
        self._task = None
        self.over.set()
        self._give(Ended(error))

    def _answer(self, answer: Any) -> None:
        self._later(self._deliver, answer)

    def _lose(self) -> None:
        self._later(self._end)

    def _later(self, call: Callable[..., object], *args: Any) -> None:
        try:
            self._io.loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            pass  # the loop is closed, and its functions with it

    def _deliver(self, answer: Any) -> None:
        waiting = self._waiting
        if waiting is None or waiting.done():
            return
        if isinstance(answer, Exception):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)

    def _end(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(LostClaim(LOST))
        elif self._task is not None:
            self._task.cancel()


class Threads:
    """A bounded pool of threads, made when they are needed. They are daemons: one that hangs keeps no process alive."""

    def __init__(self, most: int) -> None:
        self._most, self._count = most, 0
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0
        """Tasks that are not done: more than there are threads, so there has to be another thread."""

    def submit(self, task: Callable[[], None]) -> None:
        """Have a thread do it, in the caller's context, or the next one that is free. Only the worker's thread calls
        this.
        """
        with self._lock:
            self._open += 1
            short = self._count < min(self._open, self._most)
        self._tasks.put(partial(copy_context().run, task))
        if short:
            self._count += 1
            threading.Thread(target=self._work, name=f"oarlock function {self._count}", daemon=True).start()

    def close(self) -> None:
        """No more tasks. Threads that are at work end after it."""
        for _ in range(self._count):
            self._tasks.put(None)

    def _work(self) -> None:
        while True:
            task = self._tasks.get()
            if task is None:
                return
            task()
            with self._lock:
                self._open -= 1


class UserCode:
    """One worker's. Make it after the last fork; threads and the loop begin with the first function that needs them."""

    def __init__(self, threads_max: int = THREADS) -> None:
        self._threads = Threads(threads_max)
        self._io: IoLoop | None = None
        self._runs: dict[tuple[str, str], Run] = {}
        """By controller and UID, the last one."""

    def run(self, call: Callable[[Run], Any], *, is_async: bool) -> Run:
        """A call of a function, which begins when it is first resumed. ``call``: gets the run, to ask by."""
        if not is_async:
            return ThreadRun(call, self._threads.submit)
        if self._io is None:
            self._io = IoLoop()
        return LoopRun(call, self._io)

    def starter(self, controller: StepsController) -> Callable[[Whole, bool], Run]:
        """Makes runs of its function over an object, or of the one that undoes.

        They raise StillRuns while a run that was given up goes on: it would be at work on the object too, perhaps doing
        what is to be undone; and one object whose function hangs would take one thread after the other.
        """

        def start(own: Whole, undo: bool) -> Run:
            call = controller.undo if undo else controller.run
            assert call is not None
            object_of = (controller.queue, own.uid)
            earlier = self._runs.get(object_of)
            if earlier is not None and not earlier.over.is_set():
                raise StillRuns(f"the function of {controller.name} over {own.key} was given up, but has not ended yet")
            if len(self._runs) >= RUNS_KEPT:
                self._runs = {at: run for at, run in self._runs.items() if not run.over.is_set()}
            run = self.run(partial(call, own), is_async=controller.undo_is_async if undo else controller.is_async)
            self._runs[object_of] = run
            return run

        return start

    def close(self) -> None:
        """All runs were abandoned."""
        self._threads.close()
        if self._io is not None:
            self._io.close()
