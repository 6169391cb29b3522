"""A consumer in this process, over the twin: what becomes of what its function does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from oarlock.queue import Again, Context, KeyedQueue, QueueUnreachable
from oarlock.queue.memory_steps import MemorySteps
from oarlock.queue.values import Claim, Empty, Finished, Policy, Verdict


@pytest.fixture
def queue() -> KeyedQueue:
    return KeyedQueue("invoices", "memory://")


def test_the_function_sees_each_key(queue: KeyedQueue) -> None:
    seen: list[tuple[str, bool, int]] = []
    queue.add("a", "eu/b")
    assert queue.run(lambda key, ctx: seen.append((key, ctx.still_mine(), ctx.failures)), burst=True) == 2
    assert seen == [("a", True, 0), ("eu/b", True, 0)]
    assert queue.explain("a")[0] == "a is idle: nothing is to be done."


def test_async_functions_share_a_loop(queue: KeyedQueue) -> None:
    together = threading.Barrier(3, timeout=20)
    threads: set[str] = set()

    async def sync(key: str, ctx: Context) -> None:
        threads.add(threading.current_thread().name)

    def blocking(key: str, ctx: Context) -> None:
        together.wait()

    queue.add("a", "b", "c")
    queue.run(sync, burst=True, threads=3)
    assert threads == {"oarlock-loop"}
    queue.add("a", "b", "c")
    assert queue.run(blocking, burst=True, threads=3) == 3, "and blocking ones run side by side"


def test_added_while_it_runs(queue: KeyedQueue) -> None:
    runs: list[int] = []

    def sync(key: str, ctx: Context) -> None:
        runs.append(ctx.token)
        if len(runs) == 1:
            queue.add(key)
            assert queue.look(key).state == "running+"

    queue.add("a")
    queue.run(sync, burst=True)
    assert len(runs) == 2
    assert runs[1] > runs[0]


def test_a_failure_is_kept_with_its_traceback(queue: KeyedQueue) -> None:
    def sync(key: str, ctx: Context) -> None:
        raise RuntimeError("no such customer")

    queue.add("a")
    queue.run(sync, burst=True, retries=0)
    (parked,) = queue.parked()
    assert parked.error.endswith("RuntimeError: no such customer\n")
    assert "_outcome" not in parked.error, "it begins with the user's own code"
    told = queue.explain("a")
    assert "parked" in told[0]
    assert "oarlock queue requeue a --queue invoices" in told[0]
    assert queue.requeue("a", "b") == 1
    assert queue.stats().queued == 2


@pytest.mark.parametrize(("raised", "state"), [(Again(60), "delayed"), (Again(), "queued"), (SystemExit(3), "delayed")])
def test_what_a_function_raises(queue: KeyedQueue, raised: BaseException, state: str) -> None:
    runs: list[str] = []

    def sync(key: str, ctx: Context) -> None:
        runs.append(key)
        if len(runs) == 1:
            raise raised

    queue.add("a")
    queue.run(sync, burst=True, back_off_s=60)
    assert len(runs) == (2 if state == "queued" else 1)
    assert queue.stats().delayed == (1 if state == "delayed" else 0)
    assert queue.look("a").failures == (1 if isinstance(raised, SystemExit) else 0)


async def raises(error: BaseException) -> None:
    raise error


async def gathers(error: BaseException) -> None:
    await asyncio.gather(raises(error), asyncio.sleep(0))


async def groups(error: BaseException) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(raises(error))
        await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("way", "error"),
    [
        *((way, error) for way in (raises, gathers, groups) for error in (SystemExit, KeyboardInterrupt)),
        *((way, asyncio.CancelledError) for way in (raises, gathers)),
    ],
)
def test_what_a_task_raises_ends_no_loop(
    queue: KeyedQueue, way: Callable[[BaseException], Awaitable[None]], error: type[BaseException]
) -> None:
    """asyncio lets SystemExit and KeyboardInterrupt out of ``run_forever``."""

    async def sync(key: str, ctx: Context) -> None:
        if key == "bad":
            await way(error())

    queue.add("bad", "good")
    consumer = threading.Thread(target=lambda: queue.run(sync, burst=True, back_off_s=60), daemon=True)
    consumer.start()
    consumer.join(20)
    assert not consumer.is_alive()
    assert [queue.look(key).failures for key in ("bad", "good")] == [1, 0]
    assert error.__name__ in queue.look("bad").error
    stats = queue.stats()
    assert (stats.delayed, stats.running, stats.queued) == (1, 0, 0)


def cancels(key: str, ctx: Context) -> None:
    asyncio.run(raises(asyncio.CancelledError()))


def interrupts(key: str, ctx: Context) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("function", [cancels, interrupts])
def test_no_exception_of_a_key_ends_the_consumer(queue: KeyedQueue, function: Callable[[str, Context], None]) -> None:
    queue.add("a", "b")
    assert queue.run(function, burst=True, back_off_s=60) == 2
    assert [queue.look(key).failures for key in ("a", "b")] == [1, 1]


class Call:
    """Something to await that is no coroutine, as clients return."""

    def __init__(self, ran: list[str], key: str) -> None:
        self.ran, self.key = ran, key

    def __await__(self) -> Iterator[None]:
        yield
        self.ran.append(self.key)


def test_whatever_can_be_awaited_is_awaited(queue: KeyedQueue) -> None:
    ran: list[str] = []

    async def coroutine(key: str, ctx: Context) -> None:
        await Call(ran, key)

    def plain(key: str, ctx: Context) -> Awaitable[None]:
        return coroutine(key, ctx)

    queue.add("a")
    queue.run(lambda key, ctx: Call(ran, key), burst=True)
    queue.add("b")
    queue.run(plain, burst=True)
    assert ran == ["a", "b"]


def generator(key: str, ctx: Context) -> Iterator[None]:
    yield


async def asynchronous_generator(key: str, ctx: Context) -> AsyncIterator[None]:
    yield


async def coroutine_of_a_generator(key: str, ctx: Context) -> Iterator[None]:
    return generator(key, ctx)


@pytest.mark.parametrize("function", [generator, asynchronous_generator, coroutine_of_a_generator])
def test_a_generator_is_a_failure(queue: KeyedQueue, function: Any) -> None:
    queue.add("a")
    queue.run(function, burst=True, retries=0)
    assert "TypeError: the function returned a generator" in queue.parked()[0].error


class Flaky(MemorySteps):
    """The first finish gets no answer: it is done nevertheless, or it is not."""

    def __init__(self, done: bool) -> None:
        super().__init__("invoices")
        self.done, self.calls = done, 0

    def finish(
        self, claim: Claim, verdict: Verdict, policy: Policy, *, again_ms: int | None = None, error: str = ""
    ) -> Finished | None:
        self.calls += 1
        if self.calls > 1 or self.done:
            finished = super().finish(claim, verdict, policy, again_ms=again_ms, error=error)
        if self.calls == 1:
            raise QueueUnreachable("finish")
        return finished


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
def test_a_finish_without_an_answer_is_repeated(queue: KeyedQueue, done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it was done after all, the repetition finds the lock gone and the key runs once more: at least once."""
    monkeypatch.setattr("oarlock.queue.consumer.TRY_AGAIN_S", 0.0)
    queue.steps = Flaky(done)
    queue.add("a")
    assert queue.run(lambda key, ctx: None, burst=True) == (2 if done else 1)
    assert queue.look("a").state == "idle"


def test_a_run_may_last_longer_than_its_lease(queue: KeyedQueue) -> None:
    """The lease of 3 s is renewed meanwhile; another consumer looks all the time and does not get the key."""
    runs: list[bool] = []
    other = threading.Event()

    def sync(key: str, ctx: Context) -> None:
        other.wait(3.5)
        runs.append(ctx.still_mine())

    def look() -> None:
        while not other.is_set():
            found = queue.steps.claim("other", 3_000, Policy())
            if not isinstance(found, Empty):
                runs.append(False)
            other.wait(0.05)

    queue.add("a")
    thread = threading.Thread(target=look)
    consumer = threading.Thread(target=lambda: queue.run(sync, burst=True, lease_s=3))
    consumer.start()
    while not queue.stats().running:
        other.wait(0.01)
    thread.start()
    consumer.join()
    other.set()
    thread.join()
    assert runs == [True]
    assert queue.look("a").failures == 0


def test_a_lost_lock_is_seen_and_the_key_runs_again(queue: KeyedQueue) -> None:
    """As after a Redis that forgot everything while a function ran."""
    runs: list[bool] = []
    lost = threading.Event()

    def sync(key: str, ctx: Context) -> None:
        if not runs:
            steps = queue.steps
            assert isinstance(steps, MemorySteps)
            renew = steps.renew

            def renew_and_tell(*args: object) -> list[int]:
                tokens = renew(*args)  # type: ignore[arg-type]
                threading.Timer(0.01, lost.set).start()
                return tokens

            steps.renew = renew_and_tell  # type: ignore[method-assign, assignment]
            with steps._changed:
                steps._unlock(key)
            assert lost.wait(20)
            while ctx.still_mine():
                pass
        runs.append(ctx.still_mine())

    queue.add("a")
    queue.run(sync, burst=True, lease_s=3_600)
    assert runs == [False, True]


def test_a_key_is_ours_until_our_own_clock_says_otherwise() -> None:
    now_s = 100.0
    ctx = Context(Claim("a", 7, 0, 0), 130.0, lambda: now_s)
    for now_s, mine in ((129.9, True), (130.0, False), (200.0, False)):
        assert ctx.still_mine() is mine, now_s
    ctx._renewed(230.0)
    assert ctx.still_mine()
    ctx._renewed(150.0)
    assert ctx.still_mine(), "an older answer that comes late shortens nothing"
    ctx._lose()
    assert not ctx.still_mine()


def test_damaged_data_end_the_consumer(queue: KeyedQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise LookupError("not ours")

    monkeypatch.setattr(queue.steps, "claim", broken)
    with pytest.raises(LookupError, match="not ours"):
        queue.run(lambda key, ctx: None)


def threads_of_ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("oarlock-")]


def test_what_should_stop_raises_leaves_no_thread(queue: KeyedQueue) -> None:
    def broken() -> bool:
        raise LookupError("not ours")

    with pytest.raises(LookupError, match="not ours"):
        queue.worker()(lambda key, ctx: None).run(should_stop=broken)
    assert threads_of_ours() == []


def test_what_a_signals_handler_raises_leaves_the_runs_to_their_ends(queue: KeyedQueue) -> None:
    """The handler is the caller's. The run under way has its lease renewed to the end; then all threads end."""
    begun, go_on = threading.Event(), threading.Event()
    mine: list[bool] = []

    async def sync(key: str, ctx: Context) -> None:
        begun.set()
        await asyncio.to_thread(go_on.wait, 20)
        mine.append(ctx.still_mine())

    def interrupted() -> bool:
        assert begun.wait(20)
        raise KeyboardInterrupt

    queue.add("a", "b")
    with pytest.raises(KeyboardInterrupt):
        queue.worker(lease_s=3)(sync).run(should_stop=interrupted, own_signals=False)
    assert not go_on.wait(3.5), "longer than a lease"
    assert queue.look("a").state == "running"
    go_on.set()
    for thread in threads_of_ours():
        thread.join(20)
    assert threads_of_ours() == []
    assert mine == [True]
    assert [queue.look(key).state for key in ("a", "b")] == ["idle", "queued"]


def test_a_worker_is_a_function(queue: KeyedQueue) -> None:
    @queue.worker(threads=2)
    def sync(key: str, ctx: Context) -> None:
        """Bring it up to date."""
        seen.append((key, ctx.token))

    seen: list[tuple[str, int]] = []
    sync("a", Context(Claim("a", 7, 0, 0), 1e12))
    assert seen == [("a", 7)]
    assert (sync.__name__, sync.__doc__) == ("sync", "Bring it up to date.")
    queue.add("b")
    assert queue.run(burst=True) == 1


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda queue: KeyedQueue("a b", "memory://"), "queue 'a b': a name has letters"),
        (lambda queue: KeyedQueue("a}", "memory://"), "queue 'a}'"),
        (lambda queue: queue.add(""), "key ''"),
        (lambda queue: queue.add("a\nb"), r"key 'a\nb'"),
        (lambda queue: queue.add("x" * 1_025), "1 to 1024 bytes"),
        (lambda queue: queue.add(17), "key 17"),
        (lambda queue: queue.add("\ud800"), r"key '\ud800': give printable text"),
        (lambda queue: queue.add_all("customer-17"), "add_all('customer-17'): give a list of keys"),
        (lambda queue: queue.add_after("a", float("nan")), "give seconds"),
        (lambda queue: queue.worker(lease_s=0.1), "lease_s=0.1"),
        (lambda queue: queue.worker(threads=0), "threads=0"),
        (lambda queue: queue.worker(threads=2.5), "threads=2.5: give a whole number"),
        (lambda queue: queue.worker(retries=-1), "retries=-1"),
        (lambda queue: queue.worker(retries=float("inf")), "retries=inf: give a whole number from 0 on, or None"),
        (lambda queue: queue.worker(back_off_s=9, back_off_max_s=3), "back_off_s"),
        (lambda queue: queue.run(), "has no function yet"),
        (lambda queue: Again(-1), "Again(-1)"),
    ],
)
def test_bad_input(queue: KeyedQueue, make: Callable[[KeyedQueue], object], told: str) -> None:
    with pytest.raises(ValueError) as raised:
        make(queue)
    assert told in str(raised.value)


def test_a_queue_has_one_function(queue: KeyedQueue) -> None:
    """Of two one would silently never run. The cell of a notebook, or a module loaded anew, brings the same again."""
    ran = []

    def sync(key: str, ctx: Context) -> None:
        ran.append(key)

    def other(key: str, ctx: Context) -> None:
        raise AssertionError

    queue.worker()(sync)
    with pytest.raises(ValueError, match=r"has the function .*sync already: give .*other a queue of its own"):
        queue.worker()(other)
    queue.worker(threads=2)(sync)
    queue.add("a")
    assert (queue.run(burst=True), ran) == (1, ["a"])


def test_requeue_keeps_groups(queue: KeyedQueue) -> None:
    queue.add("eu/a")
    queue.run(lambda key, ctx: 1 / 0 and None, burst=True, retries=0)
    assert queue.requeue("eu/a", "us/b", "us/b") == 1
    assert [queue.look(key).group for key in ("eu/a", "us/b")] == ["eu", "us"]
    assert queue.stats().queued == 2


def test_it_needs_neither_kubernetes_nor_rq_to_be_imported() -> None:
    told = "import sys, oarlock.queue; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split()
    assert {"redis", "oarlock"} <= set(loaded)
    assert not {"rq", "aiohttp", "uvloop", "msgspec", "click", "yaml"} & set(loaded)


def test_groups() -> None:
    def group_of(queue: KeyedQueue, key: str) -> str:
        queue.add(key)
        return queue.look(key).group

    assert group_of(KeyedQueue("q", "memory://"), "eu/17") == "eu"
    assert group_of(KeyedQueue("q", "memory://"), "17") == ""
    assert group_of(KeyedQueue("q", "memory://", group="-"), "customer-17") == "customer"
    assert group_of(KeyedQueue("q", "memory://", group=lambda key: key[-1]), "17") == "7"
