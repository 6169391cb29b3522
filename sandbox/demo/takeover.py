"""Kill a worker in the middle of its writes, and measure when other workers claim its keys.

The time is taken from outside: from just before the SIGKILL to the moment at which Redis (MONITOR) carried out the
claim that wrote a lock with another nonce. Both are read from the clock of this machine.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import redis
from redis.exceptions import RedisError

from oarlock.broker.expectations import Expectations
from oarlock.broker.keys import Keys

LOOK_EVERY_S = 0.0005
_LOCK = re.compile(r"holder=(\S+) nonce=(\S+) since_ms=(\d+)")


@dataclass(frozen=True, slots=True)
class Held:
    """A lock as it stood: "queue:key", who had it, under which nonce, and how many writes had no answer yet."""

    task: str
    holder: str
    nonce: str
    pending: int


@dataclass(slots=True)
class Takeover:
    """What was killed when (unix s), what it held, and for each key ms until another claim of it."""

    worker: str
    pid: int
    killed_s: float
    held: list[Held]
    claimed_ms: dict[str, float] = field(default_factory=dict)
    new_holders: dict[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.claimed_ms) == len(self.held)

    @property
    def pending(self) -> int:
        """Writes that were announced and had no answer at the moment of the kill."""
        return sum(each.pending for each in self.held)


class Monitor:
    """Reads Redis's own account of its commands, in a thread, and keeps the claims: (unix s, task, nonce, holder)."""

    def __init__(self, client: redis.Redis, queues: Sequence[str], keys: Keys) -> None:
        self._locks = {keys.locks(queue): queue for queue in queues}
        self.claims: list[tuple[float, str, str, str]] = []
        self._monitor = client.monitor()  # type: ignore[no-untyped-call]
        self._monitor.__enter__()
        self._thread = threading.Thread(target=self._read, name="monitor", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while True:
                told = self._monitor.next_command()
                words = str(told["command"]).split()
                # A claim writes all its locks in one HSET: key, "holder=.. nonce=.. since_ms=.. why=...", key, ...
                if len(words) < 6 or words[0].upper() != "HSET" or words[1] not in self._locks:
                    continue
                queue = self._locks[words[1]]
                for at in range(2, len(words) - 3):
                    lock = _LOCK.match(" ".join(words[at + 1 : at + 4]))
                    if lock:
                        self.claims.append((float(told["time"]), f"{queue}:{words[at]}", lock[2], lock[1]))
        except (RedisError, OSError, ValueError):
            return  # closed, or Redis has gone: what was read stays

    def close(self) -> None:
        """Its connection goes back to the pool, which has a hundred: a campaign makes more monitors than that."""
        self._monitor.connection.disconnect()
        self._thread.join(1.0)
        self._monitor.connection_pool.release(self._monitor.connection)


def find_busy(client: redis.Redis, keys: Keys, queues: Sequence[str], task: str, least_pending: int) -> list[Held]:
    """All locks of the worker that works on ``task`` with so many writes without an answer; [] where none does."""
    locks = {f"{queue}:{key}": text for queue in queues for key, text in _pairs(_flat(client, keys.locks(queue)))}
    found = []
    for each, text in locks.items():
        lock = _LOCK.search(text)
        if lock is not None:
            queue, _, key = each.partition(":")
            found.append(
                Held(each, lock[1], lock[2], _pending(Expectations.parse(_flat(client, keys.expect(queue, key)))))
            )
    holders = {held.holder for held in found if held.task == task and held.pending >= least_pending}
    return [held for held in found if held.holder in holders]


def _pending(record: Expectations | None) -> int:
    return record.unanswered if record is not None else 0


def kill_busy_worker(
    client: redis.Redis,
    keys: Keys,
    queues: Sequence[str],
    pids: Mapping[str, int],
    task: str,
    *,
    wait_s: float = 10.0,
    takeover_s: float = 20.0,
    least_pending: int = 16,
) -> Takeover | None:
    """SIGKILL the worker that has writes of ``task`` ("queue:key") in flight; wait until all it held is claimed again.

    ``pids``: RQ worker name -> pid. None where no worker was busy with it within ``wait_s``.
    """
    monitor = Monitor(client, queues, keys)
    try:
        held: list[Held] = []
        deadline = time.monotonic() + wait_s
        while not held or held[0].holder not in pids:
            if time.monotonic() > deadline:
                return None
            held = find_busy(client, keys, queues, task, least_pending)
            time.sleep(0 if held else LOOK_EVERY_S)
        worker = held[0].holder
        takeover = Takeover(worker, pids[worker], time.time(), held)
        os.kill(takeover.pid, signal.SIGKILL)
        # What it finished or claimed between our look and its death is in the monitor, too.
        deadline = time.monotonic() + takeover_s
        while not takeover.complete and time.monotonic() < deadline:
            _note_claims(takeover, monitor)
            time.sleep(0.001)
        return takeover
    finally:
        monitor.close()


def _note_claims(takeover: Takeover, monitor: Monitor) -> None:
    for at_s, task, nonce, holder in list(monitor.claims):
        for held in takeover.held:
            if held.task == task and nonce != held.nonce and holder != takeover.worker and at_s >= takeover.killed_s:
                takeover.claimed_ms.setdefault(task, round((at_s - takeover.killed_s) * 1000, 1))
                takeover.new_holders.setdefault(task, holder)


def _flat(client: redis.Redis, name: str) -> list[str]:
    """HGETALL as names and values in turn."""
    return [
        word.decode() if isinstance(word, bytes) else word for pair in client.hgetall(name).items() for word in pair
    ]


def _pairs(flat: list[str]) -> Iterator[tuple[str, str]]:
    return zip(flat[::2], flat[1::2], strict=True)
