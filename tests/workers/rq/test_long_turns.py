"""Turns that take long, shown to RQ's tools by a server that answers when it likes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import fakeredis
import pytest
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from oarlock.broker.values.claims import Claim
from oarlock.workers.rq.job import KeyJob, job_id
from oarlock.workers.rq.long_turns import JOB_TTL_S, LongTurns
from oarlock.workers.turn.engine.waiting_turns import UnderWay
from tests.manual_clock import ManualClock
from tests.workers.fleet_puppet import QUEUE

WORKER = "rq:worker:w"


class Slow:
    """A turn, as far as it is shown."""

    begun_ms = 0

    def __init__(self, key: str) -> None:
        self.claim = Claim(QUEUE, key, "nonce", None, [], None, "", False, 0)


class Rig:
    """``fails``: the names of the next calls to fail, of which "execute" has taken effect."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.client, self.clock, self.fails = fakeredis.FakeRedis(protocol=2), ManualClock(), list[str]()
        self.turns = LongTurns(self.client, "w", WORKER, 60, self.clock, self.told)
        for owner, name in ((fakeredis.FakeRedis, "exists"), (type(self.client.pipeline()), "execute")):
            monkeypatch.setattr(owner, name, self._failing(name, getattr(owner, name)))

    def _failing(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            fails = self.fails[:1] == [name]
            answer = real(*args, **options) if name == "execute" or not fails else None
            if fails:
                self.fails.pop(0)
                raise RedisTimeoutError("late")
            return answer

        return call

    def told(self, tell: Callable[[], Any]) -> bool:
        try:
            tell()
        except RedisError:
            return False
        return True

    def begin(self, key: str) -> Slow:
        turn = Slow(key)
        self.turns.begin(cast(UnderWay, turn))
        return turn

    def end(self, turn: Slow) -> None:
        self.turns.end(cast(UnderWay, turn))

    def look(self) -> None:
        self.clock.advance(1_000)
        self.turns._look()

    def job(self, key: str) -> str:
        return KeyJob.key_for(job_id(QUEUE, key))

    def current(self) -> bytes | None:
        return cast(bytes | None, self.client.hget(WORKER, "current_job"))


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(monkeypatch)


@pytest.mark.parametrize("fails", [[], ["exists"], ["execute"], ["exists", "execute"]], ids=" ".join)
def test_a_turn_is_shown_once_rq_answers_and_taken_back(rig: Rig, fails: list[str]) -> None:
    turn = rig.begin("a/1")
    rig.fails = fails
    for _ in range(len(fails) + 2):
        rig.look()
    assert rig.current() == job_id(QUEUE, "a/1").encode()
    assert 0 < cast(int, rig.client.ttl(rig.job("a/1"))) <= JOB_TTL_S
    rig.end(turn)
    assert rig.current() is None
    assert not rig.client.exists(rig.job("a/1"))


@pytest.mark.parametrize("fails", [[], ["exists"], ["execute"]], ids=" ".join)
def test_the_job_of_a_key_that_failed_is_left_as_it_is(rig: Rig, fails: list[str]) -> None:
    """Also after a turn whose job was ours."""
    earlier = rig.begin("a/1")
    rig.look()
    rig.end(earlier)
    rig.client.hset(rig.job("a/2"), "data", "failed")
    turn = rig.begin("a/2")
    rig.fails = fails
    for _ in range(len(fails) + 1):
        rig.look()
    rig.end(turn)
    assert rig.client.ttl(rig.job("a/2")) == -1
    assert rig.client.hget(rig.job("a/2"), "data") == b"failed"
