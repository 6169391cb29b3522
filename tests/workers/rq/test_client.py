"""A worker's client of RQ's keys: nobody waits for what only shows what happens."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import cast

import pytest
import redis
from redis.exceptions import RedisError
from redis.sentinel import Sentinel

from oarlock.workers.process.settings import Settings
from oarlock.workers.rq import client as rq_client
from oarlock.workers.rq.client import open_rq_client, with_our_options
from oarlock.workers.rq.heartbeat import Heartbeat


class Mute:
    """Accepts connections and says nothing."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.accepted: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                self.accepted.append(self._listening.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for each in (self._listening, *self.accepted):
            each.close()


@pytest.fixture
def mute() -> Iterator[Mute]:
    server = Mute()
    yield server
    server.close()


def ours(port: int, scheme: str = "redis", path: str = "0") -> redis.Redis:
    return open_rq_client(Settings(redis_url=f"{scheme}://127.0.0.1:{port}/{path}"), 0.05)


def behind_a_sentinel(port: int) -> redis.Redis:
    """As RQ's command line opens it: it waits without an end."""

    class Told(Sentinel):
        def discover_master(self, service_name: str) -> tuple[str, int]:
            return "127.0.0.1", port

    return cast(redis.Redis, Told([]).master_for("main"))


@pytest.mark.parametrize(
    "opened",
    [
        pytest.param(ours, id="ours"),
        pytest.param(lambda port: ours(port, "redis+sentinel", "main"), id="by a Sentinel"),
        pytest.param(lambda port: with_our_options(redis.Redis("127.0.0.1", port)), id="of RQ's command line"),
        pytest.param(lambda port: with_our_options(behind_a_sentinel(port)), id="of that, by a Sentinel"),
    ],
)
def test_a_server_that_says_nothing_is_asked_once(
    mute: Mute, opened: Callable[[int], redis.Redis], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(rq_client._PATIENCE, "socket_timeout", 0.05)
    with pytest.raises(RedisError):
        Heartbeat(opened(mute.port), "rq:worker:w", 60, []).beat("idle")
    assert len(mute.accepted) == 1
