"""How a connection is opened: a name is looked up once, a dead address costs a quarter of a second, and what failed is
told with the server's address.
"""

import asyncio
import errno
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarlock.cluster.answer import NOT_SENT
from oarlock.cluster.http import connector
from oarlock.cluster.http.connector import Connector
from oarlock.cluster.http.flight import reason
from oarlock.cluster.http.transport import Transport
from tests.cluster.client_helpers import answering, config_of, looped


@pytest.fixture
def hole() -> Iterator[int]:
    """A port whose packets nobody answers: connections wait there for ever."""
    with socket.socket() as listening, socket.socket() as first, socket.socket() as second:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for filling in (first, second):
            filling.setblocking(False)
            filling.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


def named(monkeypatch: pytest.MonkeyPatch, *ports: int, takes_s: float = 0.0) -> list[str]:
    """Every name stands for these ports of the loopback, in this order. Returns the names that were looked up."""
    asked: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: object) -> list[object]:
        if host == "127.0.0.1":  # the loop asks for each address that it connects to
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        asked.append(host)
        await asyncio.sleep(takes_s)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", each)) for each in ports]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo, raising=False)
    return asked


def numbers_or(other):
    """As a loop's getaddrinfo, with ``other`` for names: the loop asks for each address that it connects to."""

    async def getaddrinfo(host: str, port: int, **options: object) -> list[object]:
        if host == "127.0.0.1":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        return await other(host, port, **options)

    return getaddrinfo


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@looped
async def test_a_server_that_takes_no_connection_is_given_up_after_the_time_of_a_request(hole):
    """However long the answer may take, as that of a list may."""
    async with Transport(config_of(f"http://127.0.0.1:{hole}"), request_timeout_s=0.2) as transport:
        answer = await transport.read("/x", timeout_s=60.0)
    assert (answer.code, answer.error) == (NOT_SENT, f"no connection to 127.0.0.1:{hole} within 0.2 s")


@looped
async def test_a_dead_address_does_not_hide_the_next(hole, monkeypatch):
    async with answering().running() as url:
        named(monkeypatch, hole, port_of(url))
        async with Transport(config_of("http://api.test")) as transport:
            assert (await transport.read("/x")).code == 200


@looped
async def test_a_name_is_looked_up_once_for_all_and_again_when_it_is_old(monkeypatch):
    async with answering().running() as url:
        asked = named(monkeypatch, port_of(url), takes_s=0.01)
        async with Transport(config_of("http://api.test")) as transport:
            await asyncio.gather(*(transport.read("/x") for _ in range(40)))
            assert asked == ["api.test"]
            assert transport._straight is not None
            transport._straight._connector._known_until_s = time.monotonic()
            await transport._straight._connect(None)
            assert asked == ["api.test"] * 2


@looped
async def test_who_gives_up_waiting_for_a_name_ends_it_for_nobody_else(monkeypatch):
    async with answering().running() as url:
        asked = named(monkeypatch, port_of(url), takes_s=0.1)
        async with Transport(config_of("http://api.test")) as transport:
            other = asyncio.create_task(transport.read("/x"))
            assert (await transport.read("/x", timeout_s=0.01)).code == NOT_SENT
            assert (await other).code == 200
    assert asked == ["api.test"]


@looped
async def test_a_name_that_is_not_found_is_looked_up_again(monkeypatch):
    async with answering().running() as url:
        asked = named(monkeypatch, port_of(url))
        found = asyncio.get_running_loop().getaddrinfo

        async def not_found(host: str, port: int, **_: object) -> list[object]:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        async with Transport(config_of("http://api.test:6443")) as transport:
            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", not_found)
            answer = await transport.read("/x")
            told = "cannot connect to api.test:6443: Name or service not known"
            assert (answer.code, answer.error) == (NOT_SENT, told)
            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
            assert (await transport.read("/x")).code == 200
    assert asked == ["api.test"]


@pytest.mark.parametrize("silent", [True, False], ids=["it says nothing", "it says: try again"])
@looped
async def test_while_the_resolver_is_away_connections_go_to_the_address_of_before(monkeypatch, silent):
    async def away(*_: object, **__: object) -> list[object]:
        lookups.append(1)
        if silent:
            await asyncio.sleep(3600)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    lookups: list[int] = []
    monkeypatch.setattr(connector, "LOOKUP_S", 0.01)
    async with answering().running() as url:
        named(monkeypatch, port_of(url))
        async with Transport(config_of("http://api.test")) as transport:
            assert (await transport.read("/x")).code == 200
            assert transport._straight is not None
            transport._straight._connector._known_until_s = time.monotonic()
            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", numbers_or(away))
            await asyncio.gather(*(transport._straight._connect(None) for _ in range(40)))
            await transport._straight._connect(None)
    assert lookups == [1]


@looped
async def test_after_a_failed_connection_a_name_is_looked_up_anew(monkeypatch):
    async with answering().running() as url:
        asked = named(monkeypatch, 1)
        monkeypatch.setattr(connector, "DOUBTED_S", 0.0)
        async with Transport(config_of("http://api.test")) as transport:
            assert (await transport.read("/x")).code == NOT_SENT
            named(monkeypatch, port_of(url))
            assert (await transport.read("/x")).code == 200
    assert asked == ["api.test"]


@looped
async def test_who_has_no_time_left_for_a_connection_doubts_the_address(hole):
    waiting = Connector(f"http://127.0.0.1:{hole}", "", 60.0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await waiting.connect(asyncio.Protocol, None)
    assert waiting._known_until_s <= time.monotonic() + connector.DOUBTED_S


@looped
async def test_a_refusal_names_the_server():
    async with Transport(config_of("http://127.0.0.1:1")) as transport:
        answer = await transport.read("/x")
    assert (answer.code, answer.error) == (NOT_SENT, "cannot connect to 127.0.0.1:1: Connection refused")


@pytest.mark.parametrize("server", ["http://foo..bar:1", "https://.foo:1"])
@looped
async def test_what_is_no_name_is_told_as_such(server):
    async with Transport(config_of(server)) as transport:
        answer = await transport.read("/x")
    address = server.partition("://")[2]
    assert answer.code == NOT_SENT
    assert answer.error.startswith(f"cannot connect to {address}: ")


@pytest.mark.parametrize(
    ("server", "server_name", "address", "verified"),
    [
        ("https://api.test", "", "api.test:443", "api.test"),
        ("https://api.test.:6443/x", "", "api.test.:6443", "api.test"),
        ("https://10.0.0.1", "kubernetes.", "10.0.0.1:443", "kubernetes"),
        ("https://[::1]:6443", "", "[::1]:6443", "::1"),
        ("https://[fe80::1%25eth0]:6443", "", "[fe80::1%eth0]:6443", "fe80::1"),
        ("https://[fe80::1%eth0]", "", "[fe80::1%eth0]:443", "fe80::1"),
        ("http://localhost", "", "localhost:80", "localhost"),
    ],
)
def test_what_is_told_and_what_is_verified(server, server_name, address, verified):
    made = Connector(server, server_name, 4.0)
    assert (made.address, made._name) == (address, verified)


@looped
async def test_a_zone_chooses_the_interface_and_is_told_to_no_server():
    """`::1%1` is the loopback with the number of its interface."""
    answers = answering()
    try:
        server = await asyncio.start_server(answers._serve, "::1", 0)
    except OSError:
        pytest.skip("no IPv6 on this machine")
    port = server.sockets[0].getsockname()[1]
    async with server, Transport(config_of(f"http://[::1%251]:{port}")) as transport:
        assert (await transport.read("/x")).code == 200
    (request,) = answers.requests
    assert f"\r\nHost: [::1]:{port}\r\n".encode() in request


def link_local() -> str:
    """An address of this machine that only its zone makes one; "" for none."""
    try:
        interfaces = [line.split() for line in Path("/proc/net/if_inet6").read_text().splitlines()]
    except OSError:
        return ""
    for number, _, _, scope, flags, name in interfaces:
        if scope == "20" and not int(flags, 16) & 0x40:  # it may still turn out to be another's
            return f"{ipaddress.IPv6Address(int(number, 16))}%25{name}"
    return ""


@looped
async def test_an_address_that_needs_its_zone_is_reached():
    if not (address := link_local()):
        pytest.skip("no link-local address on this machine")
    answers = answering()
    server = await asyncio.start_server(answers._serve, address.replace("%25", "%"), 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Transport(config_of(f"http://[{address}]:{port}")) as transport:
        answer = await transport.read("/x")
    assert (answer.code, answer.error) == (200, "")


@pytest.mark.parametrize("url", ["ftp://x", "api.test:6443", "https://"])
def test_what_is_no_server(url):
    with pytest.raises(ValueError, match="not the URL of a server"):
        Connector(url, "", 4.0)


@looped
async def test_a_secure_server_is_never_spoken_to_in_the_clear():
    with pytest.raises(AssertionError):
        await Connector("https://127.0.0.1:1", "", 4.0).connect(asyncio.Protocol, None)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"), "Connection refused"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), "certificate verify failed"),
        (ConnectionError("as told"), "as told"),
        (ConnectionAbortedError(), "ConnectionAbortedError"),
    ],
)
def test_a_reason_is_in_words(error, told):
    assert reason(error) == told
