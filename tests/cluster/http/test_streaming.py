"""Answers that are read as they come: what of them is the body, where it ends, what becomes of the connection."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.cluster.answer import Answer
from oarlock.cluster.http.body import LINE_BYTES_MAX, BodyReader
from oarlock.cluster.http.messages import AnswerReader
from oarlock.cluster.http.streaming import READ_BUFFER, Stream
from oarlock.cluster.http.transport import Transport
from tests.cluster.client_helpers import RawServer, config_of, looped, reply

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HEAD_S = 15.0
"""It only ends a failing run."""


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%b\r\n%b\r\n" % (len(data), extension, data)


chunked = st.builds(
    lambda parts, extension, trailers: (
        b"".join(parts),
        b"".join(chunk(part, extension) for part in parts) + b"0\r\n" + trailers + b"\r\n",
    ),
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.sampled_from([b"", b";a=b", b" "]),
    st.sampled_from([b"", b"X: y\r\n", b"X: y\r\nZ: \r\n"]),
)


@given(chunked, st.data())
def test_cut_anywhere_the_body_is_that_of_the_whole_answer(case, data):
    body, raw = case
    whole = AnswerReader().feed(HEAD + raw)
    assert whole is not None
    assert whole.body == body
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    reader, found = BodyReader(chunked=True, length=None, keeps=True), b""
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        assert not reader.whole or start == len(raw)
        found += reader.feed(raw[start:end])
    assert (found, reader.whole, reader.reusable) == (body, True, True)
    reader.feed(b"H")
    assert not reader.reusable, "bytes that nobody asked for"


@given(chunked, st.binary(min_size=1, max_size=9))
def test_what_follows_the_end_is_no_part_of_it(case, more):
    body, raw = case
    reader = BodyReader(chunked=True, length=None, keeps=True)
    assert reader.feed(raw + more) == body
    assert (reader.whole, reader.reusable) == (True, False)


@pytest.mark.parametrize(
    "raw",
    [
        b"x\r\n",
        b"\r\n",
        b"-1\r\n",
        b"123456789\r\n",
        b"2\r\nabc",
        b"2\r\nabc\r\n",
        b"2\r\nab\n\r\n",
        b"1" * (LINE_BYTES_MAX + 1),
    ],
)
def test_what_is_no_chunk_is_refused(raw):
    with pytest.raises(ValueError, match=r"chunk|line"):
        BodyReader(chunked=True, length=None, keeps=True).feed(raw)


def test_a_body_with_a_length():
    reader = BodyReader(chunked=False, length=5, keeps=True)
    assert (reader.feed(b"abc"), reader.whole) == (b"abc", False)
    assert (reader.feed(b"de"), reader.whole, reader.reusable) == (b"de", True, True)
    assert BodyReader(chunked=False, length=0, keeps=True).whole


def test_a_body_that_lasts_until_the_connection_ends():
    reader = BodyReader(chunked=False, length=None, keeps=True)
    assert (reader.feed(b"abc"), reader.whole) == (b"abc", False)
    reader.at_end()
    assert (reader.whole, reader.reusable) == (True, False)


def test_the_end_of_the_connection_does_not_end_a_body_of_chunks():
    reader = BodyReader(chunked=True, length=None, keeps=True)
    reader.feed(chunk(b"abc"))
    reader.at_end()
    assert not reader.whole


# -- over a connection -------------------------------------------------------------------------------------------------


async def read(stream: Stream | Answer) -> bytes:
    """All of it."""
    assert not isinstance(stream, Answer)
    found = b""
    while part := await stream.some():
        found += part
    return found


async def watched(transport: Transport) -> bytes:
    async with transport.stream("/x", head_timeout_s=HEAD_S) as stream:
        return await read(stream)


def sends(*parts: bytes, ends: bool = False) -> RawServer:
    """The first request is answered so; the others with a whole body."""

    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        for part in parts if nth == 1 else (HEAD, chunk(b"{}"), b"0\r\n\r\n"):
            writer.write(part)
        return nth > 1 or not ends

    return RawServer(react)


@pytest.mark.parametrize(
    ("parts", "connections"),
    [
        pytest.param((HEAD, chunk(b"abc"), b"0\r\n\r\n"), 1, id="read to its end"),
        pytest.param((HEAD, chunk(b"abc"), b"0\r\n\r\nHTTP"), 2, id="more than was asked for"),
        pytest.param(
            (HEAD.replace(b"200 OK", b"200 OK\r\nConnection: close"), chunk(b"abc"), b"0\r\n\r\n"), 2, id="no"
        ),
        pytest.param((b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",), 1, id="with a length"),
    ],
)
@looped
async def test_what_becomes_of_the_connection(parts, connections):
    server = sends(*parts)
    async with server.running() as url, Transport(config_of(url)) as transport:
        async with transport.stream("/x", head_timeout_s=HEAD_S) as stream:
            assert await read(stream) == b"abc"
        assert await watched(transport) == b"{}"
    assert server.connections == connections


@looped
async def test_a_stream_that_is_left_early_ends_its_connection():
    server = sends(HEAD, chunk(b"abc"))
    async with server.running() as url, Transport(config_of(url)) as transport:
        async with transport.stream("/x", head_timeout_s=HEAD_S) as stream:
            assert await stream.some() == b"abc"
        assert await watched(transport) == b"{}"
    assert server.connections == 2


@looped
async def test_a_write_takes_no_connection_of_a_watch():
    """A server that shuts down ends watches in order, and then their connections."""
    server = sends(HEAD, chunk(b"abc"), b"0\r\n\r\n")
    async with server.running() as url, Transport(config_of(url)) as transport:
        assert await watched(transport) == b"abc"
        assert (await transport.write("POST", "/y", b"{}")).code == 200
    assert server.connections == 2


@looped
async def test_until_the_connection_ends():
    server = sends(b"HTTP/1.1 200 OK\r\n\r\nabc", ends=True)
    async with (
        server.running() as url,
        Transport(config_of(url)) as transport,
        transport.stream("/x", head_timeout_s=HEAD_S) as stream,
    ):
        assert await read(stream) == b"abc"


@looped
async def test_what_came_before_it_was_cut_off_is_handed_out():
    server = sends(HEAD, chunk(b"abc"), ends=True)
    async with (
        server.running() as url,
        Transport(config_of(url)) as transport,
        transport.stream("/x", head_timeout_s=HEAD_S) as stream,
    ):
        await asyncio.sleep(0.05)  # until the end has come, too
        assert await stream.some() == b"abc"
        for _ in range(2):
            with pytest.raises(ConnectionError, match=r"^the server closed the connection"):
                await stream.some()


@looped
async def test_what_is_not_http_ends_it():
    server = sends(HEAD, chunk(b"abc"), b"zz\r\n")
    async with server.running() as url, Transport(config_of(url)) as transport:
        async with transport.stream("/x", head_timeout_s=HEAD_S) as stream:
            with pytest.raises(ConnectionError, match="not an HTTP answer: chunk of b'zz'"):
                await read(stream)
        assert await watched(transport) == b"{}"
    assert server.connections == 2


@looped
async def test_an_idle_connection_that_is_lost_under_a_watch_is_no_failure():
    """The server may have closed it long ago; a read is asked again."""

    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        if nth == 2:
            return False
        reply(writer)
        return True

    server = RawServer(react)
    async with server.running() as url, Transport(config_of(url)) as transport:
        assert [await watched(transport), await watched(transport)] == [b"{}", b"{}"]
    assert (len(server.requests), server.connections) == (3, 2)


@pytest.mark.parametrize("way", ["cut", "closed"])
@looped
async def test_a_body_without_a_length_that_is_cut_off_is_not_whole(way):
    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nabc")
        return True

    async with (
        RawServer(react).running() as url,
        Transport(config_of(url)) as transport,
        transport.stream("/x", head_timeout_s=HEAD_S) as stream,
    ):
        assert await stream.some() == b"abc"
        reading = asyncio.create_task(stream.some())
        await asyncio.sleep(0)
        await transport.close() if way == "closed" else stream.close()
        with pytest.raises(ConnectionError):
            await reading


@looped
async def test_a_watch_that_is_given_up_while_it_opens_leaves_no_connection():
    """Also in the round of the loop in which its head comes."""
    server = sends(HEAD, chunk(b"abc"))
    async with server.running() as url, Transport(config_of(url)) as transport:
        for rounds in range(12):
            opening = asyncio.create_task(watched(transport))
            for _ in range(rounds):
                await asyncio.sleep(0.001)
            opening.cancel()
            await asyncio.wait([opening])
        assert not transport._streams._open - set(transport._streams._idle)


@looped
async def test_a_refusal_in_pieces():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in (b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 410", b" Gone\r\nContent-Le", b"ngth: 4\r\n\r\nab", b"cd"):
            writer.write(part)
            await asyncio.sleep(0.01)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with (
        server,
        Transport(config_of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as transport,
        transport.stream("/x", head_timeout_s=HEAD_S) as stream,
    ):
        assert isinstance(stream, Answer)
        assert (stream.code, stream.body) == (410, b"abcd")


@looped
async def test_a_reader_that_does_not_come_pauses_the_server():
    """What waits here stays bounded; all of it is there when the reader comes."""
    part, parts = b"y" * 100_000, 200
    written = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        for _ in range(parts):
            writer.write(chunk(part))
            await writer.drain()
            written += len(part)
        writer.write(b"0\r\n\r\n")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with (
        server,
        Transport(config_of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as transport,
        transport.stream("/x", head_timeout_s=HEAD_S) as stream,
    ):
        before = -1
        while written < READ_BUFFER or written != before:
            before = written
            await asyncio.sleep(0.1)
        assert READ_BUFFER <= written < parts * len(part)
        assert len(await read(stream)) == parts * len(part)
