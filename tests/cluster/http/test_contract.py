"""What the protocol rests on: a write arrives at most once, and its answer says whether it may have arrived."""

import asyncio
import math
import socket

import pytest
from aiohttp import web

from oarlock.cluster.answer import NO_ANSWER, NOT_SENT, TOO_LATE
from oarlock.cluster.http.messages import RequestWriter
from oarlock.cluster.http.transport import Transport
from tests.cluster.client_helpers import RawServer, config_of, json_response, looped, reply, serving

WRITES = ["POST", "PUT", "PATCH", "DELETE"]


@pytest.fixture(autouse=True, params=["straight", "library"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Requests go straight; by the library where there is a proxy. All that follows holds for both."""
    if request.param == "library":
        monkeypatch.setattr(RequestWriter, "written", lambda *args: None)
    return str(request.param)


def answers_then_drops(abort: bool):
    """The first request is answered; the next one is taken in whole ('committed') and the connection dropped."""

    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        if nth == 1:
            reply(writer)
            return True
        if abort:
            writer.transport.abort()
        return False

    return react


@pytest.mark.parametrize("abort", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("method", WRITES)
@looped
async def test_a_write_on_a_reused_connection_dropped_after_the_commit_arrives_once(method, abort):
    """One request at the server, code 0 at the client: the write may have taken effect."""
    server = RawServer(answers_then_drops(abort))
    async with server.running() as url, Transport(config_of(url)) as transport:
        assert (await transport.write(method, "/first", b"{}")).code == 200
        answer = await transport.write(method, "/second", b'{"body":1}')
        await asyncio.sleep(0.05)  # were it repeated, it would arrive by now
    assert answer.code == NO_ANSWER
    assert answer.error
    assert len(server.requests) == 2, [request[:60] for request in server.requests]
    assert server.connections == 1, "the second request must have reused the connection"


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@looped
async def test_without_the_switch_the_library_repeats(method, monkeypatch):
    """The reason for the switch, and the proof that the test above can fail."""
    monkeypatch.setattr(RequestWriter, "written", lambda *args: None)
    server = RawServer(answers_then_drops(False))
    async with server.running() as url, Transport(config_of(url)) as transport:
        await transport.write(method, "/first", b"{}")
        assert transport._session is not None
        transport._session.client._retry_connection = True
        await transport.write(method, "/second", b"{}")
    assert len(server.requests) == 3


@looped
async def test_a_read_on_a_dropped_connection_is_asked_again():
    """Reads are harmless to repeat, and idle connections do get dropped."""

    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        if nth == 2:
            return False
        reply(writer, b'{"n":%d}' % nth)
        return True

    server = RawServer(react)
    async with server.running() as url, Transport(config_of(url)) as transport:
        await transport.read("/a")
        answer = await transport.read("/b")
    assert (answer.code, answer.body) == (200, b'{"n":3}')
    assert len(server.requests) == 3


@looped
async def test_a_read_is_asked_again_only_once():
    server = RawServer(lambda nth, writer: False)
    async with server.running() as url, Transport(config_of(url)) as transport:
        assert (await transport.read("/a")).code == NO_ANSWER
    assert len(server.requests) == 2


@pytest.mark.parametrize("method", WRITES)
@looped
async def test_silence_is_no_answer(method):
    """After T_req the answer is unknown, and nothing is sent again."""
    server = RawServer(lambda nth, writer: True)
    async with server.running() as url, Transport(config_of(url), request_timeout_s=0.15) as transport:
        answer = await transport.write(method, "/x", b"{}")
    assert (answer.code, answer.error) == (NO_ANSWER, "no answer within 0.15 s")
    assert len(server.requests) == 1


@looped
async def test_an_answer_cut_off_in_its_body_is_no_answer():
    """201 with half a body: it was done, but not what was done, so it counts as unknown."""

    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(b'HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"met')
        return False

    server = RawServer(react)
    async with server.running() as url, Transport(config_of(url)) as transport:
        answer = await transport.write("POST", "/x", b"{}")
    assert answer.code == NO_ANSWER
    assert len(server.requests) == 1


@looped
async def test_a_refused_connection_is_certainly_not_sent():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"  # taken, so that nobody else listens there
        async with Transport(config_of(url)) as transport:
            answer = await transport.write("POST", "/x", b"{}")
    assert answer.code == NOT_SENT
    assert "connect" in answer.error.lower()


@pytest.mark.parametrize("method", WRITES)
@looped
async def test_redirects_are_not_followed(method):
    seen = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.path)
        raise web.HTTPTemporaryRedirect("/elsewhere")

    async with serving(handler) as url, Transport(config_of(url)) as transport:
        assert (await transport.write(method, "/x", b"{}")).code == 307
    assert seen == ["/x"]


@looped
async def test_past_its_deadline_a_write_is_not_sent():
    server = RawServer(lambda nth, writer: bool(reply(writer)) or True)
    async with server.running() as url, Transport(config_of(url), clock=lambda: 50.0) as transport:
        late = await transport.write("POST", "/late", b"{}", deadline_s=50.0)
        in_time = await transport.write("POST", "/in-time", b"{}", deadline_s=50.001)
    assert (late.code, in_time.code) == (TOO_LATE, 200)
    assert [request.split()[1][:8] for request in server.requests] == [b"/in-time"]


@looped
async def test_the_deadline_is_looked_at_again_when_the_connection_is_there():
    """Connecting may take longer than was left: the last look is right before the bytes go out."""
    looks = iter([49.0, 51.0])
    server = RawServer(lambda nth, writer: True)
    async with server.running() as url, Transport(config_of(url), clock=lambda: next(looks)) as transport:
        answer = await transport.write("DELETE", "/x", b"{}", deadline_s=50.0)
        await asyncio.sleep(0.05)
    assert answer.code == TOO_LATE
    assert server.connections == 1
    assert server.requests == []


@looped
async def test_a_write_that_waits_at_the_gate_past_its_deadline_is_not_sent():
    clock = [0.0]
    release = asyncio.Event()
    paths = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.path)
        await release.wait()
        return json_response({})

    transport_args = {"writes_max": 1, "clock": lambda: clock[0]}
    async with serving(handler) as url, Transport(config_of(url), **transport_args) as transport:
        first = asyncio.create_task(transport.write("POST", "/first", b"{}", deadline_s=10.0))
        second = asyncio.create_task(transport.write("POST", "/second", b"{}", deadline_s=10.0))
        while not paths:
            await asyncio.sleep(0.001)
        clock[0] = 11.0
        release.set()
        assert ((await first).code, (await second).code) == (200, TOO_LATE)
    assert paths == ["/first"]


@looped
async def test_no_more_writes_are_in_flight_than_allowed():
    running, most, all_there = 0, 0, asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 7:
            all_there.set()
        await all_there.wait()
        await asyncio.sleep(0.005)
        running -= 1
        return json_response({})

    async with serving(handler) as url, Transport(config_of(url), writes_max=7) as transport:
        answers = await asyncio.gather(*(transport.write("POST", "/x", b"{}") for _ in range(40)))
    assert {answer.code for answer in answers} == {200}
    assert most == 7


@looped
async def test_what_a_request_carries():
    """User agent with role, T_req as `timeout` on writes only, content type, no compression asked for."""
    seen: list[web.Request] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request)
        return json_response({})

    async with serving(handler) as url, Transport(config_of(url), role="worker") as transport:
        await transport.write("PATCH", "/x?fieldManager=m", b"[]", "application/json-patch+json")
        await transport.read("/y")
    patch, get = seen
    assert patch.headers["User-Agent"].startswith("oarlock/")
    assert patch.headers["User-Agent"].endswith("(worker)")
    assert dict(patch.query) == {"fieldManager": "m", "timeout": "4000ms"}
    assert patch.headers["Content-Type"] == "application/json-patch+json"
    assert "timeout" not in get.query
    assert "Accept-Encoding" not in get.headers
    assert "Content-Length" not in get.headers
    assert get.headers["Accept"] == "application/json"


@looped
async def test_sockets_give_up_on_unacknowledged_bytes_with_the_request(monkeypatch):
    monkeypatch.setattr(RequestWriter, "written", lambda *args: None)

    async def handler(request: web.Request) -> web.Response:
        return json_response({})

    async with serving(handler) as url, Transport(config_of(url), request_timeout_s=2.5) as transport:
        await transport.read("/x")
        assert transport._session is not None
        connector = transport._session.client.connector
        assert connector is not None
        [[(protocol, _)]] = connector._conns.values()
        sock = protocol.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 2500
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@looped
async def test_so_do_those_that_go_straight():
    async def handler(request: web.Request) -> web.Response:
        return json_response({})

    async with serving(handler) as url, Transport(config_of(url), request_timeout_s=2.5) as transport:
        assert transport._straight is not None
        connection = await transport._straight._connect(None)
        assert connection.transport is not None
        sock = connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 2500
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@looped
async def test_no_answer_is_taken_for_that_of_a_later_write(way):
    """One that comes after its request was given up ends with its connection; what nobody asked for ends one too
    (the library takes that for the answer to the next request).
    """
    writers = []

    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        writers.append(writer)
        if nth != 1:
            reply(writer, b'{"n":%d}' % nth)
        return True

    server = RawServer(react)
    async with server.running() as url, Transport(config_of(url)) as transport:
        if way == "library":
            transport._library()  # it keeps the time of a request from when it is made
        usual_s, transport.request_timeout_s = transport.request_timeout_s, 0.2
        assert (await transport.write("POST", "/slow", b"{}")).code == NO_ANSWER
        transport.request_timeout_s = usual_s  # the others are to be answered, also where the machine is busy
        reply(writers[0], b'{"n":1}')
        second = await transport.write("POST", "/second", b"{}")
        assert second.body == b'{"n":2}'
        if way == "library":
            return
        reply(writers[1], b'{"n":"nobody asked"}')
        assert transport._straight is not None
        while transport._straight._open:
            await asyncio.sleep(0.001)
        third = await transport.write("POST", "/third", b"{}")
        assert third.body == b'{"n":3}'
    assert server.connections == 3


@looped
async def test_closing_while_a_write_connects_sends_nothing(way, monkeypatch):
    if way == "library":
        pytest.skip("the library ends such a request itself")
    server = RawServer(lambda nth, writer: bool(reply(writer)) or True)
    async with server.running() as url:
        transport = Transport(config_of(url))
        assert transport._straight is not None
        connect = transport._straight._connect

        async def late(context):
            made = await connect(context)
            await transport.close()
            return made

        monkeypatch.setattr(transport._straight, "_connect", late)
        answer = await transport.write("POST", "/x", b"{}")
        await asyncio.sleep(0.05)
    assert answer.code == NOT_SENT
    assert server.requests == []


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("7", 7.0),
        ("x", None),
        (None, None),
        ("", None),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 0.0),
        ("1, 1 Jan 99999999999999999999 00:00:00 GMT", None),
        ("9" * 400, math.inf),
    ],
)
@looped
async def test_retry_after_is_read(header, expected):
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": header} if header else {})

    async with serving(handler) as url, Transport(config_of(url)) as transport:
        answer = await transport.write("POST", "/x", b"{}")
    assert (answer.code, answer.retry_after_s) == (429, expected)


@looped
async def test_a_closed_client_sends_nothing():
    async def handler(request: web.Request) -> web.Response:
        return json_response({})

    async with serving(handler) as url:
        transport = Transport(config_of(url))
        assert (await transport.read("/x")).code == 200
        await transport.close()
        answer = await transport.write("POST", "/x", b"{}")
    assert (answer.code, answer.error) == (NOT_SENT, "the client is closed")


@looped
async def test_closing_under_a_write_leaves_it_unknown():
    server = RawServer(lambda nth, writer: True)
    async with server.running() as url:
        transport = Transport(config_of(url))
        writing = asyncio.create_task(transport.write("POST", "/x", b"{}"))
        while not server.requests:
            await asyncio.sleep(0.001)
        await transport.close()
        assert (await writing).code == NO_ANSWER
