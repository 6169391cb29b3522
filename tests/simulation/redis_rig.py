"""A real Redis under a virtual clock, emptied for each run. The scripts are the released ones, but for the clock."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from broker import epoch, script_texts
from broker.connection import connect
from broker.redis_broker import RedisBroker

CLOCK_KEY = "oarlock:test-clock"
TEST_CLOCK = f"return tonumber(redis.call('GET', '{CLOCK_KEY}'))"


class SimBroker(RedisBroker):
    """The real one, with a count of the keys that are not idle."""

    def busy(self, queue: str) -> int:
        return int(self._client.hlen(self.keys.state(queue)))


class RedisRig:
    """``broker(epoch)`` gives a broker of a new epoch; ``mutate`` changes a script's text before it is loaded."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._now = 0
        self.clock_text = TEST_CLOCK

    def reset(self, mark: str = "") -> None:
        """Forget everything. ``mark`` makes the texts, and so their SHAs, those of this mutant alone."""
        self._client.flushall()
        self.clock_text = TEST_CLOCK + (f" -- {mark}\n" if mark else "")

    def clock(self, now_ms: int) -> None:
        self._now = now_ms
        self._client.set(CLOCK_KEY, now_ms)

    def broker(self, number: int, mutate: Callable[[str, str], str] | None = None) -> SimBroker:
        epoch.mint(self._client, number, clock=self.clock_text)
        self._client.set(CLOCK_KEY, self._now)
        broker = SimBroker(self._client, number, clock=self.clock_text)
        if mutate is not None:
            shas = {}
            for name in script_texts.NAMES:
                text = mutate(name, script_texts.stamped(name, number, self.clock_text))
                shas[name] = self._client.script_load(text)
            broker.shas = shas  # type: ignore[attr-defined]
        return broker


class RedisServer:
    """A private server for the run of the tests."""

    def __init__(self, binary: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="oarlock-sim-")
        path = Path(self._folder.name) / "s"
        args: list[Any] = [binary, "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen([str(a) for a in args], stdout=subprocess.DEVNULL)
        self.client = connect(f"unix://{path}")
        for _ in range(200):
            try:
                # Small hashes keep the order of insertion; large ones an order that differs from server to server.
                self.client.config_set("hash-max-ziplist-value", 1_000_000)
                return
            except redis.ConnectionError:
                time.sleep(0.02)
        raise RuntimeError("Redis did not start")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()
