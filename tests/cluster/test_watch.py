"""A watch: what it asks for, what it hands over, and how it ends."""

import asyncio
import fcntl
import sys
import termios
from contextlib import aclosing, asynccontextmanager

import orjson
import pytest
from aiohttp import web

from oarlock.cluster.client import Client
from oarlock.cluster.http.messages import RequestWriter
from oarlock.cluster.http.streaming import Stream
from oarlock.cluster.http.transport import Transport
from oarlock.cluster.resources import NODES, PODS
from oarlock.cluster.watch import IDLE_S, OPEN_TRIES, Broken, Deaf, Expired, watch_batches
from tests.cluster.client_helpers import (
    FakeTime,
    RawServer,
    config_of,
    json_response,
    looped,
    one_by_one,
    serving,
    status_json,
    status_response,
)


@pytest.fixture(autouse=True, params=["straight", "library"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Watches go straight; by the library where there is a proxy. What follows holds for both."""
    if request.param == "library":
        monkeypatch.setattr(RequestWriter, "written", lambda *args: None)
    return str(request.param)


IDLE_LONG_S = 3.0
"""Longer than a process of a busy machine stands still."""


def line(rv: int, kind: str = "MODIFIED", size: int = 0) -> bytes:
    value = {"kind": "Pod", "metadata": {"name": f"p{rv}", "resourceVersion": str(rv)}, "x": "y" * size}
    return orjson.dumps({"type": kind, "object": value}) + b"\n"


def error_line(code: int, reason: str) -> bytes:
    return b'{"type":"ERROR","object":' + status_json(code, reason) + b"}\n"


def streaming(*parts, stay: bool = False, seen=None):
    """A handler that writes the parts of a watch (bytes, or seconds or an event to wait for), then ends or stays
    silent.
    """

    async def handler(request: web.Request) -> web.StreamResponse:
        if seen is not None:
            seen.append(request)
        response = web.StreamResponse()
        response.content_type = "application/json"
        await response.prepare(request)
        for part in parts:
            if isinstance(part, bytes):
                await response.write(part)
            elif isinstance(part, asyncio.Event):
                await part.wait()
            else:
                await asyncio.sleep(part)
        if stay:
            await asyncio.Event().wait()
        return response

    return handler


async def collect(batches):
    """(events, the exception that ended it or None)."""
    events = []
    try:
        async for batch in batches:
            events += batch
    except Exception as error:
        return events, error
    return events, None


@looped
async def test_events_and_bookmarks_come_in_order_and_the_end_is_quiet():
    parts = line(5, "ADDED"), line(6), line(7, "DELETED"), line(9, "BOOKMARK")
    async with serving(streaming(*parts)) as url, Transport(config_of(url)) as transport:
        events, error = await collect(watch_batches(transport, PODS, "4"))
    assert error is None
    assert [(event.type, event.rv) for event in events] == [
        ("ADDED", "5"),
        ("MODIFIED", "6"),
        ("DELETED", "7"),
        ("BOOKMARK", "9"),
    ]
    assert orjson.loads(events[0].object)["metadata"]["name"] == "p5"


@looped
async def test_what_is_asked_for():
    seen = []
    async with serving(streaming(seen=seen)) as url, Client(config_of(url)) as client:
        async for _ in client.watch_batches(PODS, "17"):
            pass
        async for _ in client.watch_batches(NODES, "1", life_s=3600):
            pass
    assert seen[0].path == "/api/v1/pods"
    query = dict(seen[0].query)
    assert 30 <= int(query.pop("timeoutSeconds")) < IDLE_S - 10, "the end of a quiet watch is heard before it is deaf"
    assert query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "17",
    }
    assert seen[1].path == "/api/v1/nodes"
    assert seen[1].query["timeoutSeconds"] == "3600"


@looped
async def test_a_watch_without_a_position_is_refused_here():
    """An empty resourceVersion would begin with synthetic, unordered events."""
    async with Transport(config_of("http://127.0.0.1:1")) as transport:
        with pytest.raises(ValueError, match="resourceVersion"):
            await anext(watch_batches(transport, PODS, ""))


@looped
async def test_what_arrived_together_comes_together_up_to_the_limit():
    chunk = b"".join(line(rv) for rv in range(1, 451))
    async with serving(streaming(chunk, 0.05, line(451))) as url, Transport(config_of(url)) as transport:
        sizes, rvs = [], []
        async for batch in watch_batches(transport, PODS, "0", batch_max=200):
            sizes.append(len(batch))
            rvs += [int(event.rv) for event in batch]
    assert rvs == list(range(1, 452))
    assert max(sizes) == 200
    assert len(sizes) <= 6, sizes


@looped
async def test_large_lines_cut_anywhere_arrive_whole():
    """Lines of a megabyte, cut into uneven pieces."""
    stream = b"".join(line(rv, size=1_000_000) for rv in (1, 2, 3))
    parts = [stream[start : start + 70_001] for start in range(0, len(stream), 70_001)]
    async with serving(streaming(*parts)) as url, Transport(config_of(url)) as transport:
        events, error = await collect(watch_batches(transport, PODS, "0"))
    assert error is None
    assert [(event.rv, len(event.object) > 1_000_000) for event in events] == [
        ("1", True),
        ("2", True),
        ("3", True),
    ]


@looped
async def test_410_as_answer_is_expired():
    async def handler(request: web.Request) -> web.Response:
        return status_response(410, "Expired")

    async with serving(handler) as url, Transport(config_of(url)) as transport:
        events, error = await collect(watch_batches(transport, PODS, "3"))
    assert events == []
    assert isinstance(error, Expired)


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        pytest.param(error_line(410, "Expired"), Expired, id="history cut"),
        pytest.param(error_line(410, "Gone"), Expired, id="gone"),
        pytest.param(error_line(500, "InternalError"), Broken, id="the server failed"),
        pytest.param(b"<html>\n", Broken, id="not an event"),
    ],
)
@looped
async def test_events_before_the_bad_line_are_handed_out_first(ending, expected):
    """All in one chunk: what came before is not lost, what comes after is not read."""
    chunk = line(5) + line(6) + ending + line(7)
    async with serving(streaming(chunk)) as url, Transport(config_of(url)) as transport:
        events, error = await collect(watch_batches(transport, PODS, "4"))
    assert [event.rv for event in events] == ["5", "6"]
    assert isinstance(error, expected)


@looped
async def test_silence_is_deaf():
    async with serving(streaming(line(5), stay=True)) as url, Transport(config_of(url)) as transport:
        events, error = await collect(watch_batches(transport, PODS, "4", idle_s=IDLE_LONG_S))
    assert [event.rv for event in events] == ["5"]
    assert isinstance(error, Deaf)


@looped
async def test_silence_before_the_answer_is_deaf_too():
    async def handler(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(handler) as url, Transport(config_of(url)) as transport:
        _, error = await collect(watch_batches(transport, PODS, "4", idle_s=0.1))
    assert isinstance(error, Deaf)


@looped
async def test_anything_heard_counts_against_deafness():
    """Bookmarks alone keep it alive, well past the idle time in all."""
    parts = [part for rv in range(5, 25) for part in (IDLE_LONG_S / 15, line(rv, "BOOKMARK"))]
    async with serving(streaming(*parts)) as url, Transport(config_of(url)) as transport:
        events, error = await collect(watch_batches(transport, PODS, "4", idle_s=IDLE_LONG_S))
    assert error is None
    assert len(events) == 20


@looped
async def test_a_slow_reader_is_not_deaf():
    """What waits in the buffer counts as heard, however long the reader was away."""
    async with (
        serving(streaming(line(5), 0.02, line(6), stay=True)) as url,
        Transport(config_of(url)) as transport,
        aclosing(watch_batches(transport, PODS, "4", idle_s=IDLE_LONG_S)) as batches,
    ):
        first = await anext(batches)
        await asyncio.sleep(1.2 * IDLE_LONG_S)
        second = await anext(batches)
    assert [event.rv for event in first + second] == ["5", "6"]


@looped
async def test_429_on_opening_is_waited_out():
    time = FakeTime()
    count = 0
    opened = streaming(line(5))

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal count
        count += 1
        if count <= 2:
            return web.Response(status=429, headers={"Retry-After": "3"}, text="Too many requests")
        return await opened(request)

    async with serving(handler) as url, Transport(config_of(url)) as transport:
        events, error = await collect(watch_batches(transport, PODS, "4", sleep=time.sleep))
    assert error is None
    assert [event.rv for event in events] == ["5"]
    assert time.slept == [3.0, 3.0]


@looped
async def test_429_for_ever_is_broken():
    time = FakeTime()

    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=429)

    async with serving(handler) as url, Transport(config_of(url)) as transport:
        _, error = await collect(watch_batches(transport, PODS, "4", sleep=time.sleep))
    assert isinstance(error, Broken)
    assert error.answer is not None
    assert error.answer.code == 429
    assert time.slept == [1.0] * (OPEN_TRIES - 1)


@looped
async def test_a_refusal_names_its_reason():
    async def handler(request: web.Request) -> web.Response:
        return status_response(403, "Forbidden")

    async with serving(handler) as url, Transport(config_of(url)) as transport:
        _, error = await collect(watch_batches(transport, PODS, "4"))
    assert isinstance(error, Broken)
    assert str(error) == "pods: said so"


@looped
async def test_a_connection_cut_in_a_line_is_broken_and_the_piece_dropped():
    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        part = line(5) + line(6)[:20]
        writer.write(b"%x\r\n%s\r\n" % (len(part), part))
        return False

    async with RawServer(react).running() as url, Transport(config_of(url)) as transport:
        events, error = await collect(watch_batches(transport, PODS, "4"))
    assert [event.rv for event in events] == ["5"]
    assert isinstance(error, Broken)


@looped
async def test_leaving_the_loop_closes_the_connection():
    gone = asyncio.Event()
    stay = streaming(line(5), stay=True)

    async def handler(request: web.Request) -> web.StreamResponse:
        try:
            return await stay(request)
        except asyncio.CancelledError:
            gone.set()
            raise

    async with serving(handler) as url, Client(config_of(url)) as client:
        async with aclosing(one_by_one(client.watch_batches(PODS, "4"))) as events:
            async for event in events:
                assert event.rv == "5"
                break
        await asyncio.wait_for(gone.wait(), 2)


@looped
async def test_watches_take_no_place_from_writes():
    """Any number of open watches, and the one permitted write still goes through."""
    stay = streaming(line(5), stay=True)

    async def handler(request: web.Request) -> web.StreamResponse:
        return json_response({}) if request.method == "POST" else await stay(request)

    async with serving(handler) as url, Transport(config_of(url), writes_max=1) as transport:
        watches = [watch_batches(transport, PODS, "4") for _ in range(5)]
        for open_watch in watches:
            await anext(open_watch)
        assert (await transport.write("POST", "/x", b"{}")).code == 200
        for open_watch in watches:
            await open_watch.aclose()


class Tapped(Transport):
    """Keeps the answers that its watches read."""

    opened: Stream

    @asynccontextmanager
    async def stream(self, path, **given):
        async with super().stream(path, **given) as opened:
            self.opened = opened
            yield opened


@looped
async def test_the_kernel_gathers_events_while_the_reader_is_busy():
    """The server sends each event by itself; a reader that is busy with one is not woken for the next."""
    go_on = asyncio.Event()
    handler = streaming(line(2), go_on, line(3), line(4), line(5), stay=True)
    async with (
        serving(handler) as url,
        Tapped(config_of(url)) as transport,
        aclosing(watch_batches(transport, PODS, "1")) as batches,
    ):
        assert [event.rv for event in await anext(batches)] == ["2"]
        go_on.set()
        while unread(transport.opened) < len(line(3) + line(4) + line(5)):
            await asyncio.sleep(0.001)  # in these rounds of the loop they would be taken in
        assert [event.rv for event in await anext(batches)] == ["3", "4", "5"]


@looped
async def test_a_busy_reader_hears_of_the_end_at_once(way):
    """However few bytes came before it."""
    go_on = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(line(2))
        await go_on.wait()
        await response.write(line(3))
        request.transport.close()
        return response

    async with (
        serving(handler) as url,
        Tapped(config_of(url)) as transport,
        aclosing(watch_batches(transport, PODS, "1")) as batches,
    ):
        assert [event.rv for event in await anext(batches)] == ["2"]
        go_on.set()
        while (wire := transport.opened.socket) is not None and wire.fileno() >= 0:
            await asyncio.sleep(0.001)
        events, error = await collect(batches)
    assert isinstance(error, Broken)
    assert [event.rv for event in events] == (["3"] if way == "straight" else []), "the library drops what came before"


@looped
async def test_where_the_kernel_gathers_nothing_events_come_all_the_same(monkeypatch):
    """A sandbox that stands in for the kernel may refuse the option."""
    monkeypatch.setattr("socket.SO_RCVLOWAT", 9_999)
    async with serving(streaming(line(2), 0.05, line(3))) as url, Transport(config_of(url)) as transport:
        events, error = await collect(watch_batches(transport, PODS, "1"))
    assert ([event.rv for event in events], error) == (["2", "3"], None)


def unread(stream: Stream) -> int:
    """Bytes that the kernel holds for us."""
    assert stream.socket is not None
    return int.from_bytes(fcntl.ioctl(stream.socket.fileno(), termios.FIONREAD, b"\0" * 4), sys.byteorder)
