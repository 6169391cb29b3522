"""Requests through a proxy: plain ones and TLS ones, the latter in a tunnel the proxy cannot look into."""

import asyncio

from oarlock.cluster.answer import NO_ANSWER, NOT_SENT
from oarlock.cluster.http.transport import Transport
from tests.cluster.client_helpers import RawServer, config_of, looped, reply, tunnelling


@looped
async def test_a_plain_request_goes_through_the_proxy():
    proxy = RawServer(lambda nth, writer: bool(reply(writer)) or True)
    async with (
        proxy.running() as proxy_url,
        Transport(config_of("http://cluster.test:8080", proxy=proxy_url)) as transport,
    ):
        assert (await transport.write("POST", "/x", b"{}")).code == 200
    assert proxy.requests[0].startswith(b"POST http://cluster.test:8080/x?timeout=4000ms HTTP/1.1\r\n")


@looped
async def test_a_tls_request_goes_through_a_tunnel():
    """What the tunnel's other end is: a server that drops the connection before TLS is set up."""
    seen = []
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with (
        tunnelling(seen) as proxy_url,
        Transport(config_of(f"https://127.0.0.1:{port}", proxy=proxy_url)) as transport,
    ):
        answer = await transport.write("POST", "/x", b"{}")
    server.close()
    assert seen == [f"CONNECT 127.0.0.1:{port} HTTP/1.1"]
    assert answer.code == NOT_SENT


@looped
async def test_a_proxy_that_drops_a_write_leaves_it_unknown():
    proxy = RawServer(lambda nth, writer: False)
    async with (
        proxy.running() as proxy_url,
        Transport(config_of("http://cluster.test:8080", proxy=proxy_url)) as transport,
    ):
        assert (await transport.write("DELETE", "/x", b"{}")).code == NO_ANSWER
    assert len(proxy.requests) == 1
