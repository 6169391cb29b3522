"""What runs behind a cluster in a test: API server and nodes on one event loop, a fleet on threads, and their data."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.access.credentials import Auth, FixedCredentials, bearer
from oarlock.cluster.client import Client
from oarlock.controllers.builtin import register_builtin
from oarlock.sandbox.apiserver import server
from oarlock.sandbox.nodes.settings import NodeSettings
from oarlock.testing.clock import MovableClock
from oarlock.testing.fleet.data import FleetData, MemoryData
from oarlock.testing.fleet.fleet import Fleet
from oarlock.testing.operator import Operator, What
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.kinds import enabled_queues
from oarlock.workers.process.settings import BadSetting, Settings

REDIS_VARIABLE = "OARLOCK_TEST_REDIS"
MS_MAX = 1e12
START_LIMIT_S = 15.0
STOP_LIMIT_S = 5.0
ROLE = "test"
"""In the user agent of requests by a test's own helpers."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """What to bring up. ``ready_ms`` and ``terminate_ms``: how long simulated pods take.

    ``redis``: keep the fleet's data in a Redis server of this process's own instead of in memory; None: if the
    environment has OARLOCK_TEST_REDIS=1. ``controllers``: which of the built-in ones run, in
    kube-controller-manager's words; "" for none. ``operator``: controllers of one's own that run beside them; the kinds
    that have a type are defined in the cluster.
    """

    nodes: int = 3
    pods_per_node: int = 250
    ready_ms: float = 0.0
    terminate_ms: float = 0.0
    controllers: str = "*"
    redis: bool | None = None
    operator: What = ()

    def __post_init__(self) -> None:
        for name, least in (("nodes", 0), ("pods_per_node", 0)):
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or given < least:
                raise ValueError(f"{name}={given!r} has to be a whole number, {least} or more")
        for name in ("ready_ms", "terminate_ms"):
            given = getattr(self, name)
            if not isinstance(given, int | float) or isinstance(given, bool) or not 0 <= given < MS_MAX:
                raise ValueError(f"{name}={given!r} has to be a number of milliseconds, 0 or more")
        if not isinstance(self.controllers, str):
            raise ValueError(f'controllers={self.controllers!r} has to be a text, as "*" or "deployment,replicaset"')

    @property
    def on_redis(self) -> bool:
        return os.environ.get(REDIS_VARIABLE, "") in ("1", "true") if self.redis is None else self.redis


class Running:
    """``start``, then ``stop``. After a failed start nothing is left running."""

    def __init__(self, options: Options) -> None:
        self.options, self.clock, self.token = options, MovableClock(), secrets.token_urlsafe(16)
        self.url = ""
        """Empty while nothing runs."""
        self.fleet: Fleet | None = None
        self.directory: Path
        self.io: IoLoop
        self.api: server.EmbeddedCluster
        self.client: Client
        self._ends = ExitStack()

    def start(self) -> None:
        """Until turns begin. Raises FleetFailed; CannotListen; NoRedisBinary or RedisNotStarted; RuntimeError for
        controllers that there are not.
        """
        with self._ends as ends:
            self.directory = Path(tempfile.mkdtemp(prefix="oarlock-test-"))
            ends.callback(shutil.rmtree, self.directory, ignore_errors=True)
            data = self._data(ends)
            self.io = IoLoop()
            ends.callback(self.io.close)
            self._start_api(ends)
            config = ClusterConfig(self.url, credentials=FixedCredentials(Auth((bearer(self.token),))))
            self.client = Client(config, role=ROLE)
            ends.callback(lambda: self.io.run(self.client.close(), STOP_LIMIT_S))
            if self.options.controllers:
                register_builtin()
            operator = ends.enter_context(Operator(self.options.operator))
            operator.define(self.client, self.io)
            controllers = ",".join(filter(None, (self.options.controllers, *operator.names)))
            if controllers:
                try:
                    enabled_queues(controllers)
                except BadSetting as error:
                    why = str(error).partition(": ")[2]
                    raise RuntimeError(f"controllers={self.options.controllers!r}: {why}") from None
                settings = Settings(kube_api_qps=0, controllers=controllers)
                self.fleet = Fleet(config, data, settings, self.clock, self.io)
                ends.callback(self.fleet.stop)
                self.fleet.start(START_LIMIT_S)
            self._ends = ends.pop_all()

    def stop(self) -> None:
        """The fleet first, then what it needs."""
        self._ends.close()
        self.url = ""

    def call(self, what: Callable[[], T]) -> T:
        """``what`` called on the API server's loop, where nothing else changes meanwhile."""

        async def run() -> T:
            return what()

        return self.io.run(run())

    def move_time(self, by_ms: int) -> None:
        """Forward, for all: what is due by then happens now."""
        self.clock.move(by_ms)
        simulator = self.api.simulator
        if simulator is not None:
            self.call(simulator.look_now)
        if self.fleet is not None:
            self.fleet.time_moved()

    def _data(self, ends: ExitStack) -> FleetData:
        data: FleetData
        if self.options.on_redis:
            from oarlock.testing.fleet.redis_data import RedisData  # noqa: PLC0415

            data = RedisData(self.directory / "redis", self.clock)
        else:
            data = MemoryData(self.clock)
        ends.callback(data.close)
        return data

    def _start_api(self, ends: ExitStack) -> None:
        options = self.options
        nodes = NodeSettings(
            nodes=options.nodes,
            pods_per_node=options.pods_per_node,
            ready_ms=options.ready_ms,
            terminate_ms=options.terminate_ms,
        )
        self.api = server.EmbeddedCluster(
            server.Settings(token=self.token, nodes=nodes, faults_enabled=True),
            clock=self.clock.unix_s,
            monotonic=self.clock.timers_s,
        )
        ends.callback(lambda: self.io.run(self.api.stop(), STOP_LIMIT_S))
        self.url = self.io.run(self.api.start(), START_LIMIT_S)
