"""Who is asked where the master is, how long, and what holds where nobody tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from oarlock.broker.connection import finders, server_connection
from oarlock.broker.connection.client import no_retry, pool_of
from oarlock.broker.connection.finders import SentinelFinder
from oarlock.broker.connection.redis_url import parse
from oarlock.broker.connection.run_guard import RunGuard
from oarlock.broker.connection.server_connection import PlainFound
from oarlock.broker.connection.whereabouts import PATIENCE_MAX_S, PATIENCE_S, UNANSWERED_S, Place, whereabouts
from oarlock.workers.process.settings import Settings
from oarlock.workers.rq.client import open_rq_client

TEXT = "redis+sentinel://worker:word@s1:1,s2:2,s3:3/mymaster/0"
URL = parse(TEXT)
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


def yes() -> bool:
    return True


def opened(world: World) -> PlainFound:
    finder = Asker(world)
    finder.find()
    finder.known.proved(MASTER)
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
    assert waited <= 110.0 / 10
    assert calls > 75_000, "the time is for calls, not for asking"
    world.silent, world.says = set(), dict.fromkeys(URL.places, OTHER)
    world.s += 10 * PATIENCE_MAX_S
    assert connection._displaced()


def test_slow_ones_are_heard_in_the_end(world: World) -> None:
    """They were quick once. All name another master by now, and the old one answers on."""
    connection = opened(world)
    world.takes_s, world.says, begun_s = 0.8, dict.fromkeys(URL.places, OTHER), world.s
    while not connection._displaced():
        world.s += 0.1
    assert world.s - begun_s < 30.0


def test_who_hears_of_another_master_does_not_go_back_where_then_nobody_answers(world: World) -> None:
    connection = opened(world)
    world.s += 1.0
    world.says[FIRST] = OTHER
    assert connection._displaced()
    world.silent = set(URL.places)
    with pytest.raises(RedisConnectionError):
        Asker(world, may_reuse=yes).find()


def test_who_was_told_of_another_master_does_not_go_back_either(world: World) -> None:
    opened(world)
    world.says[FIRST] = OTHER
    assert Asker(world, may_reuse=yes).find() == OTHER
    world.silent = set(URL.places)
    with pytest.raises(RedisConnectionError):
        Asker(world, may_reuse=yes).find()


def test_who_has_nowhere_to_go_waits_for_silent_ones_as_long_as_ever(world: World) -> None:
    """Half of its time for each, and not the short time before that."""
    opened(world)
    world.silent = set(URL.places)
    Asker(world, may_reuse=yes).find()
    began_s = world.s
    with pytest.raises(RedisConnectionError):
        Asker(world).find()
    assert world.s - began_s == 3 * TIMEOUT_S / 2


def test_where_all_were_silent_one_of_them_is_asked_again(world: World) -> None:
    opened(world)
    world.silent = set(URL.places)
    Asker(world, may_reuse=yes).find()
    world.s, world.asked = world.s + 60.0, []
    assert Asker(world, may_reuse=yes).find() == MASTER
    assert len(world.asked) == 1


def test_a_proof_that_comes_after_word_of_another_master_does_not_count(world: World) -> None:
    known = opened(world)._finder.known
    world.says[FIRST] = OTHER
    Asker(world).find()
    known.proved(MASTER)
    assert known.proven is None
    known.proved(OTHER)
    assert known.proven == OTHER


def test_an_answer_ends_the_silence(world: World) -> None:
    connection = opened(world)
    world.silent = set(URL.places)
    Asker(world, may_reuse=yes).find()
    assert world.s < connection._finder.known.silent_until_s
    world.silent, world.says = set(), dict.fromkeys(URL.places, OTHER)
    assert Asker(world).find() == OTHER
    world.s += 1.0
    assert connection._displaced()


def test_one_that_is_asked_by_many_at_a_time_is_still_but_one_that_is_silent(world: World) -> None:
    known = opened(world)._finder.known
    for _ in range(5):
        known.unanswered(FIRST, world.s)
    assert known.silent_until_s == 0.0


def test_only_who_misled_is_asked_last_and_only_its_place_is_forgotten(world: World) -> None:
    known = opened(world)._finder.known
    known.misled(OTHER)
    assert (known.places, known.proven) == ((FIRST, SECOND, THIRD), MASTER)
    for _ in range(3):
        known.misled(MASTER)
    assert (known.places, known.proven) == ((SECOND, THIRD, FIRST), None)


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
    assert Asker(world, may_reuse=yes).find() == MASTER
    assert waited_s(world, lambda: Asker(world, may_reuse=yes).find()) == 0.0, "who is silent is not asked again"
    world.s += UNANSWERED_S
    world.silent, world.says = set(), dict.fromkeys(URL.places, OTHER)
    assert Asker(world, may_reuse=yes).find() == OTHER


def test_where_nobody_answers_no_other_connection_goes_anywhere(world: World) -> None:
    opened(world)
    world.silent = set(URL.places)
    with pytest.raises(RedisConnectionError, match="sentinel: Timeout"):
        Asker(world).find()


def test_whose_connections_may_go_where_the_master_was() -> None:
    """Those that prove to their guard that it is the server of the epoch, and RQ's, whose keys only show things."""
    guard = RunGuard()
    pools = [
        pool_of(URL, timeout_s=1.0, retry=no_retry()),
        pool_of(URL, timeout_s=1.0, retry=no_retry(), guard=guard),
        open_rq_client(Settings(redis_url=TEXT)).connection_pool,
    ]
    assert [pool.connection_kwargs["may_reuse"]() for pool in pools] == [False, False, True]
    guard.expected = "0123456789abcdef"
    assert [pool.connection_kwargs["may_reuse"]() for pool in pools] == [False, True, True]


def test_a_master_that_is_none_any_more_is_forgotten(world: World) -> None:
    opened(world)
    world.silent = set(URL.places)
    finder = Asker(world, may_reuse=yes)
    finder.known.misled(MASTER)
    with pytest.raises(RedisConnectionError):
        finder.find()
