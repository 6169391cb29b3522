"""RQ's side of a worker: how it is registered, seen, suspended, stopped and reported on, done about once a second.

RQ does this bookkeeping around every job. Here hundreds of turns fit between two heartbeats, so all of it is gathered
into one exchange a second, and none of it happens while a turn waits for a request.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError
from rq.utils import ensure_job_list, now, utcformat
from rq.worker import SimpleWorker, WorkerStatus

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.errors import BrokerFull, BrokerUnreachable
from oarlock.controllers.registry import all_queues
from oarlock.workers.process.clock import Clock, SystemClock
from oarlock.workers.process.exit_code import ForcedStop
from oarlock.workers.process.log_line import discreet, line
from oarlock.workers.process.settings import BadSetting, Settings
from oarlock.workers.rq.client import with_our_options
from oarlock.workers.rq.failed_turns import FailedTurns
from oarlock.workers.rq.heartbeat import Heartbeat
from oarlock.workers.rq.job import KeyJob, MsgpackSerializer, job_id
from oarlock.workers.rq.long_turns import LongTurns
from oarlock.workers.rq.queue import KeyQueue
from oarlock.workers.rq.requests import Requests
from oarlock.workers.rq.turn_limit import TurnLimit
from oarlock.workers.rq.worker_lists import clean_up, enter_again
from oarlock.workers.turn.engine.waiting_turns import UnderWay
from oarlock.workers.turn.steps import TurnFailed

log = logging.getLogger("oarlock.worker")

HEARTBEAT_MS, SWEEP_MS = 500, 1_000
SILENT_MS = 5_000
"""How long RQ's server is not asked after it did not answer: it may take all of the time it is given to do so."""
TRACEBACK_MAX = 20_000
UNKNOWN_ADDRESS = "unknown"
"""RQ's word."""
GONE_AFTER_S = 60
"""RQ's lists keep a worker so long beyond its ``worker_ttl``."""


class UnknownQueue(ValueError):
    """A queue without a controller; the text names those there are."""


class TurnStopped(Exception):
    """`stop-job`: the turn is ended, its key stays and is tried again."""

    of_the_turn = True
    """It says nothing of the object that was being decoded (see sdk/types)."""


def _shard_of(settings: Settings) -> str:
    """The shard a worker serves. RQ's command line shows a traceback for what it does not know: one line instead."""
    try:
        return settings.serves
    except BadSetting as error:
        print(f"oarlock: {error}", file=sys.stderr)
        raise SystemExit(2) from None


class RqShell(SimpleWorker):  # type: ignore[misc]
    """An RQ worker of keys, without the work: ``FleetWorker`` adds it."""

    queue_class = KeyQueue
    job_class = KeyJob
    death_penalty_class = TurnLimit
    _state: str
    _stopped_job_id: str | None
    pubsub_thread: Any

    def __init__(
        self,
        queues: Any,
        name: str | None = None,
        *,
        connection: Any = None,
        prepare_for_work: bool = True,
        settings: Settings | None = None,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        names = [each if isinstance(each, str) else each.name for each in ensure_job_list(queues)]
        if prepare_for_work:
            unknown = sorted(set(names) - set(all_queues()))
            if unknown:
                raise UnknownQueue(f"no such queue: {', '.join(unknown)}; there are: {', '.join(all_queues())}")
            connection = with_our_options(connection)
        options |= {"queue_class": KeyQueue, "job_class": KeyJob, "serializer": MsgpackSerializer}
        self._clock, self._rq_trouble, self._silent_until_ms = clock or SystemClock(), "", 0  # RQ is asked at once
        self._entered = False
        super().__init__(names, name, connection=connection, prepare_for_work=prepare_for_work, **options)
        self.settings = settings or (Settings.from_env() if prepare_for_work else Settings())
        self._rq_ttl_s = self.worker_ttl + GONE_AFTER_S
        self._heartbeat = Heartbeat(self.connection, self.key, self._rq_ttl_s, self.queues)
        self._shard = _shard_of(self.settings)
        self._turns = LongTurns(
            self.connection, self.name, self.key, self._rq_ttl_s, self._clock, self._told, self._shard
        )
        self._failed = FailedTurns(self.connection, self.name, self._shard, self.settings.shards)
        self._suspended = False
        self._heartbeat_at_ms = self._sweep_at_ms = 0

    def _set_connection(self, connection: Any) -> Any:
        """RQ would raise the timeout above its blocking dequeue's, which is not used here."""
        return connection

    # -- seen by RQ -----------------------------------------------------------------------------------------------

    def _exchange(self, broker: RedisBroker, state: str) -> None:
        """Once a second: heartbeat, state and counters out; suspension and requests in. Raises EpochOver."""
        now_ms = self._clock.mono_ms()
        if now_ms < max(self._heartbeat_at_ms, self._silent_until_ms):
            return
        self._heartbeat_at_ms = now_ms + HEARTBEAT_MS
        try:
            heard = self._heartbeat.beat(state)
            self._suspended = heard.suspended
            if not (heard.known and self._entered):
                self._enter()
            for queue in self.queues:
                if queue.name in heard.requests:
                    requests = Requests(self.connection, broker, self._shard, self.settings.shards)
                    requests.admit(queue, heard.requests[queue.name])
                if queue.name in heard.failing and now_ms >= self._sweep_at_ms:
                    self._failed.sweep(queue, broker.num_requeues)
            if now_ms >= self._sweep_at_ms:
                self._sweep_at_ms = now_ms + SWEEP_MS
            self._rq_trouble = ""
            if self.pubsub_thread is None or not self.pubsub_thread.is_alive():
                self.subscribe()
        except RedisError as error:
            self._silent(error)
        except (BrokerUnreachable, BrokerFull) as error:
            log.warning(line("requests_wait", reason=error))

    def _silent(self, error: RedisError | ValueError) -> None:
        """RQ's server does not answer. It only shows what happens: log it once and go on."""
        if not self._rq_trouble:
            log.warning(line("rq_silent", error=error))
        self._rq_trouble = str(error) or type(error).__name__
        if isinstance(error, RedisConnectionError | RedisTimeoutError):
            self._silent_until_ms = self._clock.mono_ms() + SILENT_MS

    def _told(self, tell: Callable[[], Any]) -> bool:
        """Whether RQ was told. It is not asked where it did not answer a moment ago."""
        if self._clock.mono_ms() < self._silent_until_ms:
            return False
        try:
            tell()
        except RedisError as error:
            self._silent(error)
            return False
        return True

    def _set_ip_address(self, connection: Any) -> None:
        if not self._told(partial(super()._set_ip_address, connection)):
            self.ip_address = UNKNOWN_ADDRESS

    def bootstrap(self, *args: Any, **options: Any) -> None:
        """As RQ's; and RQ's tools learn the queues."""
        super().bootstrap(*args, **options)
        self._told(partial(self.connection.sadd, KeyQueue.redis_queues_keys, *self.queue_keys()))
        self._turns.start()

    def register_birth(self) -> None:
        """As RQ's. Where RQ is silent, or a key of it has a wrong type, the worker works unseen until the exchange can
        enter it.
        """
        self._entered = self._told(super().register_birth)
        if not self._entered:
            self.birth_date = self.last_heartbeat = now()

    def _enter(self) -> None:
        """RQ was silent when the worker began, or RQ's keys were lost under it."""
        self._entered = False
        if self.ip_address == UNKNOWN_ADDRESS:
            super()._set_ip_address(self.connection)
        enter_again(self)
        self._entered = True

    def subscribe(self) -> None:
        """As RQ's; where RQ is silent, a later exchange does it, and where what was heard made no sense."""
        if self.pubsub_thread is not None:
            self.pubsub.close()
            self.pubsub_thread = None
        self._told(super().subscribe)

    def teardown(self) -> None:
        """As RQ's, but a silent server cannot keep a worker from leaving."""
        try:
            self._heartbeat.beat(self._state)
            super().teardown()
        except RedisError as error:
            self._silent(error)

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        """Part of the exchange, unless RQ has a pipeline to add it to."""
        if pipeline is not None:
            super().heartbeat(timeout, pipeline)

    def set_state(self, state: str, pipeline: Any = None) -> None:
        """Kept here and written by the next exchange; "suspended", after which there is none, is written at once."""
        if pipeline is not None or WorkerStatus.SUSPENDED in (state, self._state):
            super().set_state(state, pipeline)
        else:
            self._state = state

    def set_shutdown_requested_date(self) -> None:
        """RQ calls this inside a signal handler, where no connection may be used: the next exchange says it."""
        self._heartbeat.facts["shutdown_requested_date"] = utcformat(self._shutdown_requested_date)

    def check_for_suspension(self, burst: bool) -> None:
        """As RQ's, when the last exchange brought `rq suspend`. It ends with RQ's server: who shall work again could
        not say so. `oarlock pause` outlives that.
        """
        if self._suspended:
            self._told(partial(super().check_for_suspension, burst))
            self._suspended = False

    def run_maintenance_tasks(self) -> None:
        """RQ's own would fetch and run what lies in its registries. What fails is done ten minutes later."""
        self.last_cleaned_at = now()
        try:
            self._told(partial(clean_up, self))
        except ValueError as error:  # RQ takes for granted that what it reads is text
            self._silent(error)

    @property
    def should_run_maintenance_tasks(self) -> bool:
        """As RQ's, but not while RQ is silent."""
        return self._clock.mono_ms() >= self._silent_until_ms and bool(super().should_run_maintenance_tasks)

    def _start_scheduler(self, *args: Any, **options: Any) -> None:
        """RQ's worker pool asks for a scheduler; its lock needs a script, and there is nothing to schedule."""

    # -- asked by RQ ----------------------------------------------------------------------------------------------

    def _pubsub_exception_handler(self, exc: Exception, pubsub: Any, pubsub_thread: Any) -> None:
        """Remote commands survive every failure of the connection, not only a refused one."""
        if not isinstance(exc, RedisError):
            raise exc
        time.sleep(2.0)

    def _install_signal_handlers(self) -> None:
        super()._install_signal_handlers()
        signal.signal(signal.SIGUSR1, self._stop_turn)
        self.death_penalty_class.install(self._clock)

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        """As RQ's. It interrupts functions of users, too, which must not take it for their own failure."""
        try:
            super().request_force_stop(signum, frame)
        except SystemExit:
            raise ForcedStop from None

    def get_current_job_id(self, pipeline: Any = None) -> str | None:
        """Of the turn that was begun first, also of a short one that RQ's keys do not show."""
        turn = self._turns.current
        return job_id(turn.claim.queue, turn.claim.key, self._shard) if turn is not None else None

    def kill_horse(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """`stop-job`, heard by RQ's command thread: turns are the main thread's, so it is ended there."""
        ident = threading.main_thread().ident
        assert ident is not None
        signal.pthread_kill(ident, signal.SIGUSR1)

    def _stop_turn(self, signum: int, frame: FrameType | None) -> None:
        """Runs on the main thread. The turn may be over by now, and another one must not be stopped instead."""
        wanted, self._stopped_job_id = self._stopped_job_id, None
        turn = self._turns.current
        if wanted is not None and turn is not None and wanted == job_id(turn.claim.queue, turn.claim.key, self._shard):
            self._end_early(turn, TurnStopped(f"{wanted} was stopped by request"))

    def _end_early(self, turn: UnderWay, why: Exception) -> None:
        """End a turn that is under way."""
        raise NotImplementedError

    # -- failures -------------------------------------------------------------------------------------------------

    def _report(self, queue: str, key: str, failure: BaseException, in_a_row: int) -> None:
        """RQ's exception handlers hear of every failed turn, its failed-job registry of keys that keep failing: where
        RQ is silent, after a later turn.
        """
        job = KeyJob.of(queue, key, self.connection, self._shard)
        self.handle_exception(job, type(failure), failure, failure.__traceback__)
        if in_a_row >= self.settings.failed_after and not self.disable_default_exception_handler:
            said = discreet("".join(traceback.format_exception(failure)), TRACEBACK_MAX)
            self._told(partial(self._failed.add, job, said))

    def handle_exception(self, job: KeyJob, *exc_info: Any) -> None:
        """As RQ's, which logs a traceback; a turn that says itself why it failed gets a line instead."""
        if not isinstance(exc_info[1], TurnFailed):
            super().handle_exception(job, *exc_info)
            return
        log.warning(line("turn_failed", queue=job.origin, key=job.args[0], reason=discreet(exc_info[1])))
        for handler in self._exc_handlers:
            if handler(job, *exc_info) not in (None, True):
                break
