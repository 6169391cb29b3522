"""A host whose name cannot be looked up for a while is reached where it was."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import redis.utils

from oarlock.broker.connection import named
from oarlock.broker.connection.client import no_retry, pool_of
from oarlock.broker.connection.finders import SentinelFinder
from oarlock.broker.connection.named import RESOLVER, UNANSWERED_S, Named, resolve_briefly
from oarlock.broker.connection.redis_url import parse


class World:
    """The resolver, and the module's clock in seconds."""

    def __init__(self, port: int) -> None:
        self.s, self.port = 1_000.0, port
        self.error: int | None = None
        self.looked_up: list[str] = []

    def monotonic(self) -> float:
        return self.s

    def getaddrinfo(self, host: str, port: int, *_: Any) -> list[Any]:
        if host[0].isdigit():
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        self.looked_up.append(host)
        if self.error is not None:
            raise socket.gaierror(self.error, "no answer")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as server:
        one = World(server.getsockname()[1])
        monkeypatch.setattr(named, "known", {})
        monkeypatch.setattr(named, "time", one)
        monkeypatch.setattr(socket, "getaddrinfo", one.getaddrinfo)
        yield one


def connect(world: World, *, may_reuse: bool) -> str:
    """Where it led."""
    connection = Named(host="redis.test", port=world.port, may_reuse=lambda: may_reuse)
    with connection._connect() as made:
        assert connection.host == "redis.test", "TLS verifies the name"
        return str(made.getpeername()[0])


def test_the_address_of_before_is_used_while_nobody_answers(world: World) -> None:
    connect(world, may_reuse=True)
    world.error, world.looked_up = socket.EAI_AGAIN, []
    assert [connect(world, may_reuse=True) for _ in range(3)] == ["127.0.0.1"] * 3
    assert world.looked_up == ["redis.test"], "each lookup takes seconds"
    world.s += UNANSWERED_S
    world.error = None
    connect(world, may_reuse=True)
    connect(world, may_reuse=True)
    assert len(world.looked_up) == 3


def test_each_name_is_looked_up_where_lookups_are_answered(world: World) -> None:
    for number in range(3):
        connect(world, may_reuse=True)
        assert len(world.looked_up) == number + 1


@pytest.mark.parametrize(
    ("error", "may_reuse"),
    [(socket.EAI_AGAIN, False), (socket.EAI_NONAME, True)],
    ids=["what has to prove nothing", "a name that is gone"],
)
def test_else_it_is_an_error(world: World, error: int, may_reuse: bool) -> None:
    connect(world, may_reuse=may_reuse)
    world.error = error
    with pytest.raises(socket.gaierror):
        connect(world, may_reuse=may_reuse)


def test_a_name_that_was_never_looked_up_is_an_error(world: World) -> None:
    world.error = socket.EAI_AGAIN
    with pytest.raises(socket.gaierror):
        connect(world, may_reuse=True)


def test_where_nothing_is_at_that_address_any_more_the_name_is_looked_up_again(world: World) -> None:
    connect(world, may_reuse=True)
    (name,) = named.known.values()
    world.error, world.looked_up, name.address = socket.EAI_AGAIN, [], "127.0.0.2"
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            connect(world, may_reuse=True)
    assert len(world.looked_up) == 2


def test_a_name_that_nobody_answers_for_is_looked_up_less_and_less(world: World) -> None:
    connect(world, may_reuse=True)
    world.error, world.looked_up, begun_s = socket.EAI_AGAIN, [], world.s
    while world.s < begun_s + 235.0:
        connect(world, may_reuse=True)
        world.s += 1.0
    assert len(world.looked_up) == 3 + 5, "after 5, 10 and 20 s, and then every 40 s"


def test_one_name_says_nothing_about_another(world: World) -> None:
    connect(world, may_reuse=True)
    named.known["other.test", world.port] = named._Name("127.0.0.1", silent_until_s=world.s + 100.0)
    world.looked_up = []
    connect(world, may_reuse=True)
    assert world.looked_up == ["redis.test"]


@pytest.mark.parametrize("path", ["redis://127.0.0.1:{port}/0", "redis+sentinel://127.0.0.1:{port}/mymaster/0"])
def test_idle_connections_are_kept_alive(path: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A balancer forgets them after minutes, and the side that only listens never hears of it."""
    monkeypatch.setattr(SentinelFinder, "find", lambda finder: ("127.0.0.1", world.port))
    connection: Any = pool_of(parse(path.format(port=world.port)), timeout_s=1.0, retry=no_retry()).make_connection()
    with connection._connect() as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


def test_the_first_lookup_reads_how_long_to_wait_and_no_program_inherits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str | None] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: read.append(os.environ.get("RES_OPTIONS")))
    monkeypatch.delenv("RES_OPTIONS", raising=False)
    resolve_briefly()
    assert read == [RESOLVER]
    assert "RES_OPTIONS" not in os.environ


def test_what_an_operator_has_set_for_the_resolver_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RES_OPTIONS", "timeout:9")
    resolve_briefly()
    assert os.environ["RES_OPTIONS"] == "timeout:9"


@pytest.mark.parametrize(
    "url", ["redis://h:1/0", "unix:///s", "redis+sentinel://h:1/m/0", "redis+cluster://h:1/"], ids=lambda url: url[:12]
)
def test_a_connection_is_made_without_a_file(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a process may open no more, it has to wait, and not to end."""
    named.driver()

    def no_more() -> str:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(redis.utils, "get_lib_version", no_more)
    pool = pool_of(parse(url), timeout_s=1.0, retry=no_retry())
    pool.make_connection()
    finder = pool.connection_kwargs.get("finder")
    if finder is not None:
        finder._class(host="h", port=1, **finder._options)
