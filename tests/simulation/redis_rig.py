"""A real Redis under a virtual clock, emptied for each run. The scripts are the released ones, but for the clock."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import redis

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.memory.state import FRONT
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps import script_texts
from tests.broker.broker_state import Counts, counted, counts_of

CLOCK_KEY = "oarlock:test-clock"
TEST_CLOCK = f"return tonumber(redis.call('GET', '{CLOCK_KEY}'))"


class SimBroker(RedisBroker):
    """The real one, with a look at what is not idle and at the cache as a whole."""

    def busy(self, queue: str) -> int:
        return int(self._client.hlen(self.keys.state(queue)))

    def busy_keys(self, queue: str) -> set[str]:
        """Keys that are queued, in work or parked."""
        return {key.decode() for key in self._client.hkeys(self.keys.state(queue))}

    def places(self, queue: str) -> tuple[list[str], list[str]]:
        """The keys in the front of a queue, and those behind it."""
        front = [fields[b"key"].decode() for _, fields in self._client.xrange(self.keys.stream(queue))]
        return front, [key.decode() for key in self._client.zrange(self.keys.backlog(queue), 0, -1)]

    def queued_keys(self, queue: str) -> set[str]:
        states = self._client.hgetall(self.keys.state(queue))
        return {key.decode() for key, text in states.items() if text.startswith(b"queued ")}

    def delayed_keys(self, queue: str) -> set[str]:
        return {key.decode() for key in self._client.zrange(self.keys.delayed(queue), 0, -1)}

    def recorded(self, queue: str, key: str) -> dict[str, str]:
        """The record of a key, as it is stored."""
        fields = self._client.hgetall(self.keys.expect(queue, key))
        return {name.decode(): value.decode() for name, value in fields.items()}

    def cached(self, resource: str) -> dict[str, str]:
        """Name -> resourceVersion of everything cached."""
        generation = self._client.hget(self.keys.of("generation"), resource)
        if generation is None:
            return {}
        values = self._client.hgetall(self.keys.objects(resource, generation.decode()))
        return {name.decode(): value.split(b" ", 1)[0].decode() for name, value in values.items()}

    def counts(self, resource: str) -> tuple[Counts, Counts]:
        """How many objects of each class are under each entry: as it is kept, and by the objects."""
        generation = (self._client.hget(self.keys.of("generation"), resource) or b"0").decode()
        begin = self.keys.of(f"summary:{resource}:{generation}:")
        kept = {
            name.decode().removeprefix(begin): counts_of(
                {of.decode(): text.decode("latin-1") for of, text in kept.items()}
            )
            for name in self._client.scan_iter(f"{begin}*", count=1_000)
            if (kept := self._client.hgetall(name))
        }
        values = self._client.hvals(self.keys.objects(resource, generation))
        return kept, counted(value.split(b"\n")[1].decode() for value in values)


class RedisRig:
    """``broker(epoch)`` begins an epoch and gives a broker of it. Real scripts, but for the clock."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._now = 0
        self._clock_text, self._front = TEST_CLOCK, FRONT

    def reset(self, mark: str = "", front: int = FRONT) -> None:
        """Forget everything. ``mark`` gives the scripts SHAs of their own: for texts that a test has changed.
        ``front``: how many keys the front of a queue takes.
        """
        self._client.flushall()
        self._front = front
        mark += f" front {front}" if front != FRONT else ""
        self._clock_text = TEST_CLOCK + (f" -- {mark}\n" if mark else "")

    def clock(self, now_ms: int) -> None:
        self._now = now_ms
        self._client.set(CLOCK_KEY, now_ms)

    def broker(self, number: int) -> SimBroker:
        self._client.flushall()
        self._client.set(CLOCK_KEY, self._now)
        with _front_of(self._front):
            epoch.bootstrap(self._client, number, clock=self._clock_text)
            for name in script_texts.NAMES:
                script_texts.sha(name, number, self._clock_text)  # it is kept
        return SimBroker(self._client, number, clock=self._clock_text)


@contextmanager
def _front_of(front: int) -> Iterator[None]:
    """Scripts that are stamped meanwhile have a front of so many keys."""
    real, old = script_texts.FOLDER.source, f"local FRONT = {FRONT}\n"
    assert old in real("lib/queue")
    with mock.patch.object(
        script_texts.FOLDER, "source", lambda name: real(name).replace(old, f"local FRONT = {front}\n")
    ):
        yield


class RedisServer:
    """A private server for the run of the tests."""

    def __init__(self, binary: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="oarlock-sim-")
        path = Path(self._folder.name) / "s"
        args: list[Any] = [binary, "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen([str(a) for a in args], stdout=subprocess.DEVNULL)
        self.client = connect(f"unix://{path}")
        for _ in range(1_500):
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
