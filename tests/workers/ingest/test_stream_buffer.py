"""The buffer between the I/O loop and the main thread, and the source that fills it from a client."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Any

import pytest

from oarlock.cluster.answer import Answer
from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.listing import PAGE_LIMIT, ListError, Page
from oarlock.cluster.resources import PODS as POD_RESOURCE
from oarlock.cluster.watch import Broken, Deaf, Expired
from oarlock.controllers.builtin import PODS
from oarlock.workers.ingest.api_lister_watcher import (
    BREATH_MAX_S,
    BREATH_S,
    FIRST_BREATH_S,
    FULL,
    MANY,
    PAUSE_MS,
    UNAWAITED_S,
    ApiListerWatcher,
)
from oarlock.workers.ingest.lister_watcher import End, Ending
from oarlock.workers.ingest.stream_buffer import StreamBuffer
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.wakeup import Wakeup
from tests.manual_clock import ManualClock


@pytest.fixture
def io() -> Iterator[IoLoop]:
    loop = IoLoop()
    yield loop
    loop.close()


def until(condition: Callable[[], bool], limit_s: float = 20.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.001)


class FakeClient:
    """Watches and lists from generators."""

    def __init__(self, batches: Callable[[], AsyncGenerator[list[WatchEvent], None]]) -> None:
        self._batches = batches
        self.timeouts_s: list[float] = []

    def watch_batches(self, resource: object, rv: str, **given: object) -> AsyncGenerator[list[WatchEvent], None]:
        return self._batches()

    def list_pages(self, resource: object, limit: int, timeout_s: float) -> AsyncGenerator[Page, None]:
        self.timeouts_s.append(timeout_s)
        return self._batches()  # type: ignore[return-value]


def events(first: int, count: int) -> list[WatchEvent]:
    return [WatchEvent("ADDED", str(first + i), b"{}") for i in range(count)]


def source_of(
    client: FakeClient, io: IoLoop, wake: Callable[[], None] = lambda: None, **given: Any
) -> ApiListerWatcher:
    return ApiListerWatcher(client, PODS, io, wake, ManualClock(), **given)  # type: ignore[arg-type]


def test_a_full_buffer_stops_the_watch_from_reading_on(io: IoLoop) -> None:
    asked = [0]

    async def endless() -> AsyncGenerator[list[WatchEvent], None]:
        while True:
            asked[0] += 1
            yield events(asked[0] * 100, 100)

    buffer = source_of(FakeClient(endless), io, events_max=250).watch("1")
    until(lambda: asked[0] == 4)
    assert len(buffer) == 300
    time.sleep(0.05)
    assert asked[0] == 4, "three are here, the fourth was read and waits for room"
    assert [event.rv for event in buffer.take(150)] == [str(rv) for rv in (*range(100, 200), *range(200, 250))]
    time.sleep(0.05)
    assert asked[0] == 4, "the room must be worth it"
    buffer.take(50)
    until(lambda: asked[0] == 6)
    buffer.close()


@pytest.mark.parametrize(
    ("counts", "awaited", "breaths"),
    [
        pytest.param((1, 1, 1), (1, 1, 1), 3 * [BREATH_S], id="few events"),
        pytest.param((MANY,) * 4, (1,) * 4, [BREATH_S, 2 * BREATH_S, BREATH_MAX_S, BREATH_MAX_S], id="many"),
        pytest.param((MANY, 1, 1), (1, 1, 1), [BREATH_S, 2 * BREATH_S, BREATH_S], id="fewer again"),
        pytest.param(
            (MANY,) * 5,
            (0,) * 5,
            [BREATH_S, 2 * BREATH_S, 4 * BREATH_S, UNAWAITED_S, UNAWAITED_S],
            id="many, and nobody waits for them",
        ),
        pytest.param(
            (MANY,) * 5,
            (0, 0, 0, 1, 1),
            [BREATH_S, 2 * BREATH_S, 4 * BREATH_S, UNAWAITED_S, BREATH_MAX_S],
            id="somebody waits again",
        ),
        pytest.param(
            (MANY, MANY, MANY, 1, 1, 1, 1),
            (0, 0, 0, 0, 0, 0, 0),
            [BREATH_S, 2 * BREATH_S, 4 * BREATH_S, UNAWAITED_S, UNAWAITED_S / 2, BREATH_S * 1.75, BREATH_S],
            id="fewer again, and nobody waits for them",
        ),
        pytest.param((1,) * MANY, (), [*MANY * [BREATH_S], UNAWAITED_S - BREATH_S], id="nobody takes them"),
        pytest.param((FULL, FULL, FULL - 1), (1,), [BREATH_S], id="none while there is enough for a call"),
    ],
)
def test_how_long_a_watch_breathes(
    io: IoLoop, counts: Sequence[int], awaited: Sequence[int], breaths: Sequence[float]
) -> None:
    """An ingestor that rests behind another one is not woken for each event, and one that is ahead waits for few."""
    slept: list[float] = []
    begun = threading.Event()

    async def breathe(breath_s: float) -> None:
        slept.append(breath_s)
        if awaited:
            begun.wait(5.0)
            buffer.take(100)
            buffer.pace(bool(awaited[len(slept) - 1]))

    async def batches() -> AsyncGenerator[list[WatchEvent], None]:
        for count in counts:
            yield events(1, count)

    buffer = source_of(FakeClient(batches), io, sleep=breathe).watch("1")
    begun.set()
    until(lambda: buffer._end is not None)
    assert slept == breaths


def test_a_breath_after_a_pause_is_short_unless_many_come_at_once(io: IoLoop) -> None:
    """A turn that ends a pause makes an object and changes it at once: the second event is not kept back."""
    slept: list[float] = []
    begun = threading.Event()
    clock = ManualClock()
    pauses_ms = (PAUSE_MS, 2, PAUSE_MS - 1, PAUSE_MS, 2)
    counts = (1, 1, 1, MANY, 1)

    async def breathe(breath_s: float) -> None:
        slept.append(breath_s)
        clock.advance(30)  # it is no pause of the server's
        begun.wait(5.0)
        buffer.take(100)

    async def batches() -> AsyncGenerator[list[WatchEvent], None]:
        for pause_ms, count in zip(pauses_ms, counts, strict=True):
            clock.advance(pause_ms)
            yield events(1, count)

    source = ApiListerWatcher(FakeClient(batches), PODS, io, lambda: None, clock, sleep=breathe)  # type: ignore[arg-type]
    buffer = source.watch("1")
    begun.set()
    until(lambda: buffer._end is not None)
    assert slept == [FIRST_BREATH_S, BREATH_S, BREATH_S, BREATH_S, 2 * BREATH_S]


def test_nothing_is_lost_or_reordered_between_the_threads(io: IoLoop) -> None:
    total, wakeup = 20_000, Wakeup()

    async def many() -> AsyncGenerator[list[WatchEvent], None]:
        for at in range(0, total, 50):
            yield events(at, 50)

    buffer = source_of(FakeClient(many), io, wakeup.set, events_max=120).watch("1")
    taken: list[str] = []
    while buffer.end() is None:
        if got := buffer.take(77):
            taken += [event.rv for event in got]
        else:
            assert wakeup.wait(5.0) or buffer.end() is not None
    assert taken == [str(rv) for rv in range(total)]
    assert buffer.end() == End(Ending.CLOSED)


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (Expired("410"), Ending.EXPIRED),
        (Deaf("75 s"), Ending.DEAF),
        (Broken("cut"), Ending.BROKEN),
        (ListError(POD_RESOURCE, Answer(500)), Ending.BROKEN),
        (ZeroDivisionError("a bug"), Ending.BROKEN),
    ],
)
def test_how_a_stream_ended_is_told_after_its_events(io: IoLoop, error: Exception, ending: Ending) -> None:
    async def some() -> AsyncGenerator[list[WatchEvent], None]:
        yield events(1, 3)
        raise error

    buffer = source_of(FakeClient(some), io).watch("1")
    until(lambda: len(buffer) == 3)
    until(lambda: buffer._end is not None)
    assert buffer.end() is None
    assert len(buffer.take(10)) == 3
    end = buffer.end()
    assert end is not None
    assert end.ending is ending
    assert str(error) in end.text


@pytest.mark.parametrize(
    ("error", "heard"),
    [(None, True), (Expired("410"), True), (Deaf("75 s"), False), (Broken("cut"), False)],
    ids=["the end in order", "410", "silence", "cut off"],
)
def test_what_counts_as_heard(io: IoLoop, error: Exception | None, heard: bool) -> None:
    async def nothing() -> AsyncGenerator[list[WatchEvent], None]:
        if error is not None:
            raise error
        for none in ():
            yield none

    clock = ManualClock()
    clock.advance(5_000)
    source = ApiListerWatcher(FakeClient(nothing), PODS, io, lambda: None, clock)  # type: ignore[arg-type]
    buffer = source.watch("1")
    until(lambda: buffer.end() is not None)
    assert source.heard_ms() == (clock.mono_ms() if heard else 0)


def test_behind_a_deaf_watch_a_list_is_no_hearing(io: IoLoop) -> None:
    """The server lives, and the watch in its place may be as silent: what it says counts."""
    said: list[object] = []

    async def stream() -> AsyncGenerator[list[WatchEvent], None]:
        for each in said:
            if isinstance(each, Exception):
                raise each
            yield each  # type: ignore[misc]

    clock = ManualClock()
    clock.advance(5_000)
    source = ApiListerWatcher(FakeClient(stream), PODS, io, lambda: None, clock)  # type: ignore[arg-type]

    def heard_after(stream: Callable[[], Any], *items: object) -> int:
        said[:] = items
        clock.advance(1_000)
        buffer = stream()
        until(lambda: bool(buffer.take(10)) or buffer.end() is not None)
        until(lambda: buffer.end() is not None)
        return source.heard_ms()

    page = Page("7", (), first=True, last=True)
    first = heard_after(lambda: source.pages(1), page)
    assert first == clock.mono_ms()
    assert heard_after(lambda: source.watch("1"), Deaf("75 s")) == first
    assert heard_after(lambda: source.pages(1), page) == first
    assert heard_after(lambda: source.watch("1")) == clock.mono_ms(), "the end in order"
    assert heard_after(lambda: source.pages(1), page) == clock.mono_ms()


def test_a_probe_waits_for_less_than_a_list(io: IoLoop) -> None:
    """It may go over a connection that was lost without a word, and nothing is watched until it has an answer."""

    async def none() -> AsyncGenerator[list[WatchEvent], None]:
        return
        yield []

    client = FakeClient(none)
    for limit in (1, PAGE_LIMIT):
        buffer = source_of(client, io).pages(limit)
        until(lambda buffer=buffer: buffer.end() is not None)  # type: ignore[misc]
    assert client.timeouts_s == [10.0, 60.0]


def test_closing_ends_the_task_and_its_connection(io: IoLoop) -> None:
    closed = threading.Event()

    async def endless() -> AsyncGenerator[list[WatchEvent], None]:
        try:
            while True:
                yield events(1, 10)
        finally:
            closed.set()

    buffer = source_of(FakeClient(endless), io, events_max=10).watch("1")
    until(lambda: len(buffer) >= 10)
    buffer.close()
    assert closed.wait(20)


def test_the_wakeup_ends_a_wait_from_a_thread_and_from_a_signal_handler() -> None:
    wakeup = Wakeup()
    threading.Timer(0.05, wakeup.set).start()
    began_s = time.monotonic()
    assert wakeup.wait(20.0)
    before = signal.signal(signal.SIGALRM, lambda *_: wakeup.set())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert wakeup.wait(20.0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began_s < 15.0


def test_rings_before_a_wait_are_one() -> None:
    wakeup = Wakeup()
    for _ in range(100):
        wakeup.set()
    assert wakeup.wait(0.0)
    assert not wakeup.wait(0.0)


def test_a_channel_tells_its_filler_of_room_only_when_that_waits(io: IoLoop) -> None:
    buffer: StreamBuffer[int] = StreamBuffer(io.loop, lambda: None, 4)
    io.run(buffer.put([1, 2, 3]))
    assert buffer.take(2) == [1, 2]
    io.run(buffer.put([4, 5, 6, 7]))
    assert buffer.take(10) == [3, 4, 5, 6, 7]
