"""A process that takes keys and runs a function for them.

Each thread claims a key, runs the function and finishes the key. One thread at a time looks for keys, and blocks while
there are none; the others work or wait for their turn to look. One more thread renews the leases.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import secrets
import signal
import socket
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from oarlock.queue.context import Again, Context
from oarlock.queue.loop_thread import LoopThread
from oarlock.queue.steps import Steps
from oarlock.queue.values import Claim, Empty, QueueFull, QueueUnreachable, Verdict

if TYPE_CHECKING:
    from oarlock.queue.worker import Function, Options

log = logging.getLogger("oarlock.queue")

WAIT_S = 1.0
"""An idle consumer looks at least so often. The scripts rely on it: a clock that moves by more has jumped."""
TRY_AGAIN_S = 0.5
"""Between two calls while Redis does not answer."""


class Outcome(NamedTuple):
    """How a run ended."""

    verdict: Verdict
    again_ms: int | None = None
    error: str = ""


class Consumer:
    """One run of a worker in this process."""

    def __init__(self, steps: Steps, function: Function, options: Options, add: Callable[[str], object]) -> None:
        self._steps, self._function, self._options, self._add = steps, function, options, add
        self._policy, self._lease_ms = options.policy, int(options.lease_s * 1000)
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self._look = threading.Lock()
        self._held_lock = threading.Lock()
        self._held: dict[Claim, Context] = {}
        self._stopping = False  # a plain flag: a signal's handler that sets an Event may wait for the set that it cut
        self._ended = threading.Event()
        self._crash: BaseException | None = None
        self._runs = 0
        self._loop: LoopThread | None = None

    def run(self, burst: bool, for_s: float | None, should_stop: Callable[[], bool] | None, own_signals: bool) -> int:
        """Until a signal, or as the arguments say. Returns how many runs ended. Raises what nobody expected."""
        until_s = None if for_s is None else time.monotonic() + for_s
        if inspect.iscoroutinefunction(self._function):
            self._loop = LoopThread()
        names = [f"oarlock-{self._steps.name}-{n}" for n in range(self._options.threads)]
        workers = [threading.Thread(target=self._guarded, args=(self._work, burst), name=n, daemon=True) for n in names]
        renewal = threading.Thread(target=self._see_through, args=(workers,), name="oarlock-renew", daemon=True)
        with self._signals() if own_signals else nullcontext():
            try:
                for thread in (*workers, renewal):
                    thread.start()
                self._wait_for(workers, until_s, should_stop)
            finally:  # a signal's handler may have raised: the runs under way go on, but no thread takes a key any more
                self._stopping = True
        self._ended.set()
        renewal.join()
        if self._crash is not None:
            raise self._crash
        return self._runs

    def _wait_for(
        self, workers: list[threading.Thread], until_s: float | None, should_stop: Callable[[], bool] | None
    ) -> None:
        while any(thread.is_alive() for thread in workers):
            for thread in workers:
                thread.join(WAIT_S)
                if thread.is_alive():
                    break
            if until_s is not None and time.monotonic() >= until_s:
                self._stopping = True
            if should_stop is not None and not self._stopping:
                try:
                    if should_stop():
                        self._stopping = True
                except Exception as error:
                    self._crashed(error)

    def _see_through(self, workers: list[threading.Thread]) -> None:
        """Renew the leases until the last worker has ended, also if ``run`` has raised before. Then end the loop."""
        self._guarded(self._renew_all, workers)
        for thread in workers:
            thread.join()
        if self._loop is not None:
            self._loop.close()

    def _guarded(self, target: Callable[..., None], *args: Any) -> None:
        """A thread's body. An error that nobody expected ends the consumer, and ``run`` raises it."""
        try:
            target(*args)
        except BaseException as error:
            self._crashed(error)

    def _crashed(self, error: BaseException) -> None:
        log.error("queue %s: the consumer ends: %r", self._steps.name, error)  # ``run`` may have raised already
        self._crash = self._crash or error
        self._stopping = True

    def _work(self, burst: bool) -> None:
        while not self._stopping:
            found = self._next(burst)
            if found is None:
                if burst and not self._stopping:
                    return
                continue
            claim, ctx = found
            try:
                self._finish(claim, ctx, self._outcome(ctx))
            finally:
                with self._held_lock:
                    del self._held[claim]
                    self._runs += 1

    def _next(self, burst: bool) -> tuple[Claim, Context] | None:
        """A key of ours. None: stopping, or, in a burst, nothing is queued."""
        with self._look:
            while not self._stopping:
                begun_s = time.monotonic()
                try:
                    found = self._steps.claim(self.holder, self._lease_ms, self._policy)
                    if not isinstance(found, Empty):
                        ctx = Context(found[0], begun_s + self._options.lease_s)
                        with self._held_lock:
                            self._held[found[0]] = ctx
                        return found[0], ctx
                    if burst:
                        return None
                    next_s = WAIT_S if found.next_ms is None else found.next_ms / 1000
                    self._steps.wait(min(next_s, WAIT_S))
                except (QueueUnreachable, QueueFull) as error:
                    log.warning("cannot take keys: %s", error)
                    self._ended.wait(TRY_AGAIN_S)
        return None

    def _outcome(self, ctx: Context) -> Outcome:
        """Run the function. Whatever it raises is a failure of the key, not of the consumer: no signal raises here, as
        this is not the main thread.
        """
        try:
            returned: Any = self._function(ctx.key, ctx)
            if inspect.isawaitable(returned):
                returned = self._await(returned)
            if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
                raise TypeError(
                    "the function returned a generator, and nothing of that has run: write it without yield"
                )
        except Again as again:
            return Outcome(Verdict.OK, int(again.seconds * 1000))
        except BaseException as error:
            log.exception("queue %s: the run of %r failed", self._steps.name, ctx.key)
            frames = error.__traceback__.tb_next if error.__traceback__ else None  # the first is this method
            return Outcome(
                Verdict.FAILED,
                None,
                "".join(traceback.format_exception(error.with_traceback(frames))),
            )
        return Outcome(Verdict.OK)

    def _await(self, awaitable: Awaitable[Any]) -> Any:
        async def awaited() -> Any:  # a loop runs coroutines only
            return await awaitable

        if self._loop is None:  # a plain function that returned something to await
            return asyncio.run(awaited())
        return self._loop.run(awaited())

    def _finish(self, claim: Claim, ctx: Context, outcome: Outcome) -> None:
        """Tell Redis, and go on trying: only the renewal thread, or a lease that ended, makes us give the key up."""
        while True:
            try:
                verdict, again_ms, error = outcome
                done = self._steps.finish(claim, verdict, self._policy, again_ms=again_ms, error=error)
                if done is None:
                    # Redis may have lost the lock, and with it the key. A look too many is harmless.
                    log.warning("queue %s: the lock of %r was lost, it runs again", self._steps.name, claim.key)
                    self._add(claim.key)
                elif done.state == "parked":
                    log.error("queue %s: %r is parked, failures: %d", self._steps.name, claim.key, done.failures)
                return
            except (QueueUnreachable, QueueFull) as error_of_step:
                if not ctx.still_mine():
                    log.warning(
                        "queue %s: the end of %r could not be told: %s", self._steps.name, claim.key, error_of_step
                    )
                    return
                self._ended.wait(TRY_AGAIN_S)

    def _renew_all(self, workers: list[threading.Thread]) -> None:
        every_s = min(WAIT_S, self._options.lease_s / 4)
        while any(thread.is_alive() for thread in workers) and not self._ended.wait(every_s):
            with self._held_lock:
                held = dict(self._held)
            if not held:
                continue
            begun_s = time.monotonic()
            try:
                lost = set(self._steps.renew(self.holder, self._lease_ms, list(held)))
            except (QueueUnreachable, QueueFull) as error:
                log.warning("cannot renew: %s", error)
                continue
            for claim, ctx in held.items():
                if claim.token in lost:  # or it has just been finished, and nobody asks any more
                    ctx._lose()
                else:
                    ctx._renewed(begun_s + self._options.lease_s)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first SIGTERM or SIGINT ends the consumer once its runs have ended, the second at once. Signals count,
        not what else stops it: one that comes after ``for_s`` is the first.
        """
        signalled = False

        def stop(number: int, frame: FrameType | None) -> None:
            nonlocal signalled
            if signalled:
                raise SystemExit(128 + number)
            signalled = self._stopping = True

        before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
