"""The process of an ingestor, from its settings to its exit code."""

from __future__ import annotations

import json
import logging
import os
import random
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

import redis
from redis.exceptions import AuthenticationError, RedisError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_exponential

from oarlock.broker.connection import fitness, server_facts
from oarlock.broker.connection.client import BadRedisUrl, RunGuard, connect
from oarlock.broker.connection.redis_url import parse
from oarlock.cluster.access import config
from oarlock.cluster.access.credentials import ConfigError
from oarlock.cluster.event_correlator import ObjectRef
from oarlock.cluster.reader import Reader
from oarlock.controllers.entries import Watched
from oarlock.controllers.registry import WATCHED
from oarlock.workers.counters.request_counts import RequestCounts
from oarlock.workers.epoch.coordinator import EpochCoordinator, FleetRefused
from oarlock.workers.epoch.fleet_lease import ApiLease, lease_name
from oarlock.workers.epoch.redis_side import RedisSide
from oarlock.workers.epoch.shard_layout import Layout
from oarlock.workers.ingest.act_events import ActEvents, Teller
from oarlock.workers.ingest.api_lister_watcher import ApiListerWatcher
from oarlock.workers.ingest.ingestor import Ingestor
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.lister_watcher import ListerWatcher
from oarlock.workers.ingest.reflector import Reflector
from oarlock.workers.ingest.relist import new_generation
from oarlock.workers.ingest.shard_lister_watcher import Ours, ShardListerWatcher
from oarlock.workers.ingest.upstream_detector import UpstreamDetector
from oarlock.workers.ingest.upstream_guard import UpstreamGuard
from oarlock.workers.metrics.serving.ingest_thread import IngestMetrics
from oarlock.workers.process.clock import Clock, SystemClock
from oarlock.workers.process.collecting import collect_rarely
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.kinds import enabled_queues, kinds_of
from oarlock.workers.process.log_line import line
from oarlock.workers.process.rights import INGESTOR, MissingRights
from oarlock.workers.process.settings import Settings
from oarlock.workers.process.wakeup import Wakeup
from oarlock.workers.signing.signing_broker import signing_wrapper
from oarlock.workers.supervisor.shard_processes import run_shards
from oarlock.workers.tracing.choice import open_tracer

RESIGN_S = 0.3
CLOSE_S = 0.5

log = logging.getLogger("oarlock.ingest")

Announce = Callable[[Mapping[str, Any]], None]


class Unusable(Exception):
    """The settings cannot be used; the text is one line with the remedy."""


def run_ingestor(
    settings: Settings,
    *,
    embedded: bool = False,
    wait_for_redis_s: float = 0.0,
    announce: Announce | None = None,
    listening: Sequence[socket.socket] = (),
) -> int:
    """Ingest until SIGTERM or SIGINT. Returns the exit code: 0, or 2 with one line on stderr.

    2: settings that cannot be used, a Redis that is unfit or absent (for longer than ``wait_for_redis_s``), a fleet
    this process may not work for. ``embedded``: Redis 6.2 will do. ``announce``: called with a dict of facts when
    the epoch is open; by default they are printed as a line of JSON. ``listening``: where metrics and health are
    served, a socket for each shard that is served; none: nowhere. Call it on the main thread.

    Where the cluster is divided and no shard is named: a process for each.
    """

    def ingest(mine: Settings, own: socket.socket | None) -> int:
        try:
            process = IngestProcess(mine, announce or _print, own)
            process.check_redis(embedded, wait_for_redis_s)
            process.run()
        except (Unusable, ConfigError, BadRedisUrl, FleetRefused) as error:
            print(f"oarlock: {error}", file=sys.stderr)
            return 2
        return 0

    return run_shards(settings, listening, ingest)


class IngestProcess:
    """An ingestor with its connections, its epoch coordinator and its metrics. Raises BadRedisUrl and ConfigError."""

    def __init__(self, settings: Settings, announce: Announce, listening: socket.socket | None = None) -> None:
        self._settings, self._announce = settings, announce
        self._clock: Clock = SystemClock()
        self._metrics = IngestMetrics(listening, settings, self._clock)
        self._started_ms = self._clock.mono_ms()
        self._wakeup = Wakeup()
        self._stopping = False
        guard, shard = RunGuard(), settings.tag
        self._redis: redis.Redis = connect(settings.redis_url, guard=guard, shard=shard, tls=settings.redis_tls)
        cluster = config.load(settings.kubeconfig or None)
        self._client = Reader(
            cluster,
            role="ingestor",
            request_timeout_s=settings.request_timeout_ms / 1000,
            on_forbidden=MissingRights(INGESTOR, self._clock.mono_ms),
            observer=RequestCounts(self._metrics.row),
        )
        self._io = IoLoop()
        self._teller = None if settings.dry_run else Teller(cluster, MissingRights(INGESTOR, self._clock.mono_ms))
        self._tracer = open_tracer("ingestor", settings)
        owners = KnownOwners()
        detector = UpstreamDetector(self._clock.wall_ms, kinds_of(enabled_queues(settings.controllers)))
        self.reflectors = [
            Reflector(
                resource,
                self._lister_watcher(resource),
                owners,
                nonce=new_generation,
                random=random.Random(),
                detector=detector if resource.adoptable else None,
                tracer=self._tracer,
            )
            for resource in WATCHED.values()
        ]
        name = f"ingestor-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        wrap = signing_wrapper(settings, self._clock)
        side = RedisSide(self._redis, guard, shard=shard, fleet=settings.fleet_id, wrap=wrap, client_of=self._client_of)
        layout = None
        if settings.serves != "0":
            every_ms = settings.lease_ms // 2
            layout = Layout(self._lease("0"), settings.fleet_id, settings.shards, every_ms, self._wakeup.set)
        self._coordinator = EpochCoordinator(
            side, self._lease(shard), settings, self._clock, name, wake=self._wakeup.set, layout=layout
        )
        self.ingestor = Ingestor(
            self._coordinator,
            self.reflectors,
            owners,
            self._opened,
            None if settings.dry_run else UpstreamGuard(detector, settings.alongside_upstream),
            anew=bool(settings.operator),
            acts=self._act_events(),
        )

    def _act_events(self) -> ActEvents | None:
        if self._teller is None:
            return None
        name = lease_name(self._settings.tag)
        lease = ObjectRef("coordination.k8s.io/v1", "Lease", self._settings.lease_namespace, name, "")
        return ActEvents(self._teller.tell, lease, socket.gethostname())

    def _lister_watcher(self, resource: Watched[Any]) -> ListerWatcher:
        whole = ApiListerWatcher(self._client, resource, self._io, self._wakeup.set, self._clock)
        if self._settings.shards == 1:
            return whole
        ours = Ours(self._settings.serves, self._settings.shards)
        return ShardListerWatcher(whole, ours, self._clock.mono_ms)

    def _client_of(self, shard: str) -> redis.Redis:
        return connect(self._settings.redis_url, shard=shard, tls=self._settings.redis_tls)

    def _lease(self, shard: str) -> ApiLease:
        return ApiLease(self._io, self._client.lease(self._settings.lease_namespace, lease_name(shard)))

    def check_redis(self, embedded: bool, wait_s: float) -> None:
        """Whether this Redis can be used. Raises Unusable."""
        url = parse(self._settings.redis_url)
        patiently = Retrying(
            stop=stop_after_delay(wait_s),
            wait=wait_exponential(multiplier=0.05, max=1.0),
            retry=retry_if_exception(_may_pass),
            reraise=True,
        )
        try:
            patiently(fitness.check_for_data, self._redis, url, embedded=embedded)
            doubt = fitness.doubt(self._redis)
            hint = "" if embedded else fitness.patch_hint(server_facts.ask(self._redis, "server"))
        except fitness.UnfitServer as error:
            raise Unusable(f"cannot use the Redis of --redis at {url.place}: {error}") from None
        except RedisError as error:
            raise Unusable(
                f"cannot use the Redis of --redis: {error}; is it running, and is the password right?"
            ) from None
        if doubt:
            log.warning(line("doubtful redis", at=url.place, why=doubt))
        if hint:
            log.info(line("patch level of redis", at=url.place, hint=hint))

    def run(self) -> None:
        """Rounds until a signal says stop. Raises FleetRefused."""
        before = {signum: signal.signal(signum, self._stop) for signum in (signal.SIGTERM, signal.SIGINT)}
        try:
            if self._teller is not None:
                self._io.run(self._teller.start())
            self._metrics.start(self.ingestor, self._io)
            collect_rarely()
            while not self._stopping:
                now_ms = self._clock.mono_ms()
                self._metrics.tick(now_ms)
                due_ms = self.ingestor.round(now_ms)
                if due_ms > 0 and not self._stopping:
                    self._wakeup.wait(due_ms / 1000)
        finally:
            try:  # a second signal changes nothing: closing is brief, and gives up the Lease
                self._close()
            finally:
                for signum, handler in before.items():
                    signal.signal(signum, handler)

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        self._stopping = True
        self._wakeup.set()

    def _close(self) -> None:
        self.ingestor.close()
        resigned = self._coordinator.resign()
        try:
            if resigned is not None:
                resigned.result(RESIGN_S)
            if self._teller is not None:
                self._io.run(self._teller.close(CLOSE_S / 2), CLOSE_S)
            self._io.run(self._client.close(), CLOSE_S)
        except TimeoutError:
            log.warning(line("closing took too long"))
        self._io.close()
        self._redis.close()
        self._tracer.close()

    def _opened(self, number: int) -> None:
        after_ms = self._clock.mono_ms() - self._started_ms
        name = self._coordinator.name
        facts = {"event": "open", "role": "ingestor", "name": name, "epoch": number, "after_ms": after_ms}
        self._announce(facts | ({"shard": self._settings.serves} if self._settings.shards > 1 else {}))


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, RedisError) and not isinstance(error, AuthenticationError)


def _print(facts: Mapping[str, Any]) -> None:
    try:  # in one piece: the processes of other shards write there too
        os.write(sys.stdout.fileno(), f"{json.dumps(facts)}\n".encode())
    except OSError as error:  # the reader of a pipe has gone, or the disk is full: it ingests all the same
        log.warning(line("untold", reason=error))
