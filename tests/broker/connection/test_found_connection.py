"""Who is asked where the master is, how long, and what holds where nobody tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from oarlock.broker.connection import finders, server_connection
from oarlock.broker.connection.finders import PATIENCE_S, UNANSWERED_S, Place, SentinelFinder, whereabouts
from oarlock.broker.connection.redis_url import parse
from oarlock.broker.connection.run_guard import RunGuard
from oarlock.broker.connection.server_connection import PlainFound

URL = parse("redis+sentinel://worker:word@s1:1,s2:2,s3:3/mymaster/0")
FIRST, SECOND, THIRD = URL.places
MASTER, OTHER = ("10.0.0.1", 6379), ("10.0.0.2", 6379)
TIMEOUT_S = 4.0


class World:
    """The modules' clock, in seconds, and what each Sentinel does."""

    def __init__(self) -> None:
        self.s = 1_000.0
        self.says: dict[Place, Place] = dict.fromkeys(URL.places, MASTER)
        self.silent: set[Place] = set()
        self.takes_s = 0.001
        self.asked: list[Place] = []

    def monotonic(self) -> float:
        return self.s


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    one = World()
    monkeypatch.setattr(finders, "time", one)
    monkeypatch.setattr(server_connection, "time", one)
    whereabouts.cache_clear()
    yield one
    whereabouts.cache_clear()


class Asker(SentinelFinder):
    """The answers are the world's."""

    def __init__(self, world: World, **options: Any) -> None:
        super().__init__(URL, **({"timeout_s": TIMEOUT_S} | options))
        self._world = world

    def _answer(self, place: Place, patience_s: float) -> list[bytes]:
        self._world.asked.append(place)
        if place in self._world.silent or self._world.takes_s > patience_s:
            self._world.s += patience_s
            raise RedisTimeoutError("Timeout reading from socket")
        self._world.s += self._world.takes_s
        host, port = self._world.says[place]
        return [host.encode(), str(port).encode()]


def proving() -> RunGuard:
    guard = RunGuard()
    guard.expected = "0123456789abcdef"
    return guard


def opened(world: World) -> PlainFound:
    finder = Asker(world)
    finder.find()
    finder.known.proven = MASTER
    return PlainFound(host=MASTER[0], port=MASTER[1], finder=finder)


def waited_s(world: World, call: Any) -> float:
    before_s = world.s
    call()
    return world.s - before_s


def test_an_open_connection_asks_every_second_and_hears_of_another_master(world: World) -> None:
    connection = opened(world)
    world.s += 1.0
    assert [connection._displaced() for _ in range(5)] == [False] * 5
    assert world.asked == [FIRST, FIRST]
    world.says[FIRST] = OTHER
    assert not connection._displaced()
    world.s += 1.0
    assert connection._displaced()


def test_who_says_nothing_is_asked_last_by_all_clients_of_the_process(world: World) -> None:
    one, other = opened(world), opened(world)
    world.silent, world.asked = {FIRST}, []
    world.s += 1.0
    assert not one._displaced()
    assert not other._displaced()
    Asker(world).find()
    assert world.asked == [FIRST, SECOND, SECOND]


def test_an_open_connection_hears_of_another_master_from_the_next_who_speaks(world: World) -> None:
    connection = opened(world)
    world.silent, world.says = {FIRST, SECOND}, dict.fromkeys(URL.places, OTHER)
    rounds = 0
    while not connection._displaced():
        world.s += 1.0
        rounds += 1
    assert rounds == 2


def test_where_nobody_answers_calls_hardly_pay_for_it(world: World) -> None:
    connection = opened(world)
    world.silent = set(URL.places)
    begun_s, calls, waited = world.s, 0, 0.0
    while world.s - begun_s < 110.0:
        before_s = world.s
        assert not connection._displaced()
        waited += world.s - before_s
        world.s += 0.001
        calls += 1
    assert waited <= 110.0 * 3 * PATIENCE_S / (2 + UNANSWERED_S) + PATIENCE_S
    assert calls > 75_000, "the time is for calls, not for asking"
    world.silent, world.says = set(), dict.fromkeys(URL.places, OTHER)
    world.s += UNANSWERED_S
    assert connection._displaced()


def test_a_new_connection_waits_briefly_for_who_says_nothing(world: World) -> None:
    world.silent = {FIRST, SECOND}
    assert waited_s(world, lambda: Asker(world).find()) < 2 * PATIENCE_S + 0.01
    assert waited_s(world, lambda: Asker(world).find()) < 0.01


def test_those_that_are_far_away_are_waited_for_longer(world: World) -> None:
    world.takes_s = 1.0
    assert Asker(world).find() == MASTER
    world.asked = []
    assert Asker(world).find() == MASTER
    assert world.asked == [FIRST]


def test_where_nobody_answers_a_connection_that_has_to_prove_itself_goes_where_the_master_was(world: World) -> None:
    opened(world)
    world.silent = set(URL.places)
    assert Asker(world, guard=proving()).find() == MASTER
    assert waited_s(world, lambda: Asker(world, guard=proving()).find()) == 0.0, "who is silent is not asked again"
    world.s += UNANSWERED_S
    world.silent, world.says = set(), dict.fromkeys(URL.places, OTHER)
    assert Asker(world, guard=proving()).find() == OTHER


@pytest.mark.parametrize("guard", [None, RunGuard()], ids=["no guard", "a guard that knows no life yet"])
def test_where_nobody_answers_no_other_connection_goes_anywhere(world: World, guard: RunGuard | None) -> None:
    opened(world)
    world.silent = set(URL.places)
    with pytest.raises(RedisConnectionError, match="sentinel: Timeout"):
        Asker(world, guard=guard).find()
    assert Asker(world, any_master=True).find() == MASTER


def test_a_master_that_is_none_any_more_is_forgotten(world: World) -> None:
    opened(world)
    world.silent = set(URL.places)
    finder = Asker(world, guard=proving())
    finder.misled()
    with pytest.raises(RedisConnectionError):
        finder.find()
