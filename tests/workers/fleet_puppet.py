"""An engine whose turns do what their key's name says, and the processes that run it.

Names: ``ok-*`` ends well, ``boom-*`` raises, ``slow-*``, ``long-*`` and ``held-*`` wait on the I/O loop (0.3 s, 3 s,
600 s), ``die-*`` kills its own process, ``stop-*`` stops it, ``sick-*`` raises while the key of that name exists,
``lost-*`` finds its claim lost, ``crawl-*`` sleeps 0.1 s. While the key ``NO_ENGINES`` exists no worker can start.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import redis

from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, Claim, Claimed, ClaimLimits, Idle, LoadSpec
from oarlock.broker.values.errors import ClaimLost
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.cluster.access.credentials import ConfigError
from oarlock.controllers.registry import all_queues
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.settings import Settings
from oarlock.workers.rq_worker import FleetWorker
from oarlock.workers.supervisor.process_list import file_writer
from oarlock.workers.supervisor.supervisor import Supervisor
from oarlock.workers.supervisor.worker_command import run_supervised

QUEUE = "replicaset"
BEGUN, ENDED, CANCELLED, BATCHES = "rq:test:begun", "rq:test:ended", "rq:test:cancelled", "rq:test:batches"
SICK, NO_ENGINES = "rq:test:sick", "rq:test:no-engines"


class PuppetTurn:
    """Begins, waits if it has to, ends."""

    age_ratios = ()
    in_function = False

    def __init__(self, engine: PuppetEngine, claim: Claim) -> None:
        self._engine, self._claim = engine, claim
        self.waits_for: Future[None] | None = None

    def advance(self) -> Finish | None:
        if self.waits_for is None:
            self.waits_for = self._engine.begin(self._claim.key)
            if self.waits_for is not None:
                return None
        else:
            self.waits_for.result()
        self._engine.end(self._claim.key)
        return Finish(self._claim.queue, self._claim.key, self._claim.nonce, Verdict.OK)

    def did(self, failure: str) -> str:
        return failure

    def abandon(self) -> None:
        if self.waits_for is not None:
            self.waits_for.cancel()


class PuppetEngine:
    """Claims and ends for real; ``quiet`` turns do nothing at all, for measuring."""

    def __init__(
        self, settings: Settings, broker: RedisBroker, queues: Sequence[str], observer: object, quiet: bool = False
    ) -> None:
        self._settings, self._broker, self._quiet = settings, broker, quiet
        self._queues, self._specs = queues, [LoadSpec(queue, "things") for queue in queues]
        self._log: redis.Redis = connect(settings.redis_url)
        if self._log.exists(NO_ENGINES):
            raise ConfigError("there are no engines today")
        self._io = IoLoop()

    def claim(
        self, holder: str, keys_max: int, *, but: Collection[str] = (), beside: Collection[str] | None = None
    ) -> Batch | Idle:
        limits = ClaimLimits(self._settings.lease_ms, self._settings.drain_ms, keys_max, beside=beside)
        reply = self._broker.claim(holder, secrets.token_hex(16), self._specs, limits)
        if isinstance(reply, Batch) and not self._quiet:
            self._log.rpush(BATCHES, len(reply.claims))
        return reply

    def start(self, batch: Batch, claim: Claim) -> PuppetTurn:
        return PuppetTurn(self, claim)

    def begin(self, key: str) -> Future[None] | None:
        """What a turn waits for, where it is one that waits."""
        if self._quiet:
            return None
        self._log.rpush(BEGUN, key)
        return self._act(key, key.partition("/")[2].partition("-")[0])

    def end(self, key: str) -> None:
        if not self._quiet:
            self._log.rpush(ENDED, key)

    def _act(self, key: str, what: str) -> Future[None] | None:
        match what:
            case "boom":
                raise RuntimeError(f"boom over {key}")
            case "lost":
                raise ClaimLost(key)
            case "slow":
                return self._io.submit(self._wait(key, 0.3))
            case "long":
                return self._io.submit(self._wait(key, 3))
            case "held":
                return self._io.submit(self._wait(key, 600))
            case "crawl":
                time.sleep(0.1)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "sick" if self._log.exists(SICK):
                raise RuntimeError(f"{key} is sick")
        return None

    async def _wait(self, key: str, wait_s: float) -> None:
        try:
            await asyncio.sleep(wait_s)
        except asyncio.CancelledError:
            connect(self._settings.redis_url).rpush(CANCELLED, key)
            raise

    def took_too_long(self, turn: PuppetTurn, limit_s: int) -> None:
        """It runs no function of a user."""

    def finish(self, finishes: Sequence[Finish]) -> list[int]:
        return self._broker.finish(finishes)

    def finish_and_claim(self, finishes: Sequence[Finish], holder: str, keys_max: int) -> tuple[list[int], Claimed]:
        return self.finish(finishes), partial(self.claim, holder, keys_max)

    def wait(self, timeout_s: float) -> bool:
        return self._broker.wait(self._queues, timeout_s) is not None

    def close(self) -> None:
        self._io.close()


class PuppetWorker(FleetWorker):
    engine_factory = staticmethod(PuppetEngine)

    def handle_warm_shutdown_request(self) -> None:
        super().handle_warm_shutdown_request()
        logging.getLogger("oarlock.test").info("event=stop_heard worker=%s", self.name)


def _quiet(settings: Settings, broker: RedisBroker, queues: Sequence[str], observer: object) -> PuppetEngine:
    return PuppetEngine(settings, broker, queues, observer, quiet=True)


class QuietWorker(FleetWorker):
    engine_factory = staticmethod(_quiet)


def main(count: str, state_dir: str, grace_ms: str) -> int:
    """``python -m tests.workers.fleet_puppet COUNT STATE_DIR GRACE_MS``: a supervised fleet of puppets.

    Settings come from the environment.
    """
    log_format = "%(asctime)s.%(msecs)03d %(process)d %(message)s"
    logging.basicConfig(level=logging.INFO, format=log_format, datefmt="%Y-%m-%d %H:%M:%S")
    settings = Settings.from_env()
    return Supervisor(
        settings,
        int(count),
        run_supervised(settings, all_queues(), PuppetWorker),
        on_change=[file_writer(Path(state_dir) / "workers.json")],
        grace_ms=int(grace_ms),
    ).run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
