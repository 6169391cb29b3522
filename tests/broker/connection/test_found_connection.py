"""An open connection asks now and then whether it still leads to the master, and lives on where nobody tells."""

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from oarlock.broker.connection import server_connection
from oarlock.broker.connection.finders import Place
from oarlock.broker.connection.server_connection import UNANSWERED_S, PlainFound


class Now:
    """The module's clock, in seconds."""

    def __init__(self) -> None:
        self.s = 1_000.0

    def monotonic(self) -> float:
        return self.s


class Guide:
    """Takes its time, like servers behind a wall: three that each use up half of what the caller has."""

    asked_every_s = 1.0

    def __init__(self, now: Now) -> None:
        self._now, self.asked = now, 0
        self.says: Place | None = ("10.0.0.1", 6379)

    def find(self) -> Place:
        self.asked += 1
        if self.says is None:
            self._now.s += 6.0
            raise RedisConnectionError("no answer")
        return self.says

    def misled(self) -> None:
        return None


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    clock = Now()
    monkeypatch.setattr(server_connection, "time", clock)
    return clock


def test_it_asks_every_second_and_hears_of_another_master(now: Now) -> None:
    guide = Guide(now)
    connection = PlainFound(host="10.0.0.1", port=6379, finder=guide)
    assert [connection._displaced() for _ in range(5)] == [False] * 5
    assert guide.asked == 1
    guide.says = ("10.0.0.2", 6379)
    assert not connection._displaced()
    now.s += 1.0
    assert connection._displaced()
    assert guide.asked == 2


def test_where_nobody_answers_few_calls_pay_for_it(now: Now) -> None:
    guide = Guide(now)
    connection = PlainFound(host="10.0.0.1", port=6379, finder=guide)
    guide.says = None
    begun_s, calls = now.s, 0
    while now.s - begun_s < 110.0:
        assert not connection._displaced()
        now.s += 0.001
        calls += 1
    assert guide.asked <= 110.0 / (6.0 + UNANSWERED_S) + 1
    assert calls > 40_000, "the time is for calls, not for asking"
    guide.says = ("10.0.0.2", 6379)
    now.s += UNANSWERED_S
    assert connection._displaced()
