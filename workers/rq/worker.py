"""A genuine RQ worker whose jobs are keys.

RQ's loop, signals, registration, suspension, remote commands, death penalty, exception handlers and failed-job registry
are RQ's own (see ``workers.rq.shell``). Replaced are the two steps in the middle: a dequeue claims a batch of keys
under their locks, an execution runs their turns and ends them in one call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from redis.exceptions import RedisError
from rq.exceptions import StopRequested
from rq.worker import WorkerStatus

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, Claimed, Idle
from oarlock.broker.values.errors import BrokerBusy, BrokerFull, BrokerUnreachable, EpochOver
from oarlock.broker.values.turns import OK, Finish
from oarlock.workers.counters.request_counts import RequestCounts
from oarlock.workers.counters.turn_counts import TurnCounts
from oarlock.workers.counters.turn_slots import TurnSlot
from oarlock.workers.epoch.identity import Identity, open_broker
from oarlock.workers.process.collecting import collect_rarely
from oarlock.workers.process.exit_code import ExitCode
from oarlock.workers.process.log_line import line
from oarlock.workers.rq.queue import KeyQueue
from oarlock.workers.rq.shell import RqShell
from oarlock.workers.tracing.choice import open_tracer
from oarlock.workers.tracing.tracer import Tracer
from oarlock.workers.turn.engine.runner import Ended, EngineFactory, TurnRunner, open_engine
from oarlock.workers.turn.engine.waiting_turns import UnderWay

if TYPE_CHECKING:
    from oarlock.workers.turn.engine.turn_engine import TurnEngine

log = logging.getLogger("oarlock.worker")

WAIT_S = 1.0
LIMITED_S = 0.1
"""How long a worker waits while the rates of controllers let no key go. A token of another queue ends it earlier."""
QUICK_TURN_MS = 0.25
"""What a turn takes that finds nothing to do, with room to spare; one request to the API takes longer."""
DRAIN_PAUSE_S = 0.15


class KeyWorker(RqShell):
    """``identity``: from the process that watches this one, renews its leases and releases its keys after its end."""

    engine_factory: ClassVar[EngineFactory] = staticmethod(open_engine)
    _holder: str
    _slot: TurnSlot
    _broker: RedisBroker
    _engine: TurnEngine
    _counts: TurnCounts
    _runner: TurnRunner
    _tracer: Tracer

    def __init__(self, *args: Any, identity: Identity | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.exit_code = ExitCode.DONE
        self.identity = identity
        self._queue_of = {queue.name: queue for queue in self.queues}
        self._keys_max = self.settings.batch_keys
        self._last_queue, self._was_slow = "", False
        """Of the last batch, and whether it had a slow turn."""
        self._counts_batches = False
        self._following: Claimed | None = None
        """What was claimed with the end of the batch in hand."""
        self._found_nothing = False
        """Whether the claim with the end of the last batch brought nothing, so that it need not be made again."""

    def work(self, *args: Any, **options: Any) -> bool:
        """RQ's loop, with its options. ``max_jobs`` counts batches; there is never a scheduler."""
        identity = self.identity
        assert identity is not None, "the process that starts the worker gives it an identity"
        self._counts_batches = options.get("max_jobs") is not None
        self._holder, self._slot = identity.holder, identity.slot
        self._broker = open_broker(self.settings, identity.seen)
        self._counts = TurnCounts(identity.counts)
        requests = RequestCounts(identity.counts)
        self._engine = type(self).engine_factory(self.settings, self._broker, self.queue_names(), requests)
        self._tracer = open_tracer("worker", self.settings)
        self._runner = self._new_runner()
        collect_rarely()
        try:
            worked: bool = super().work(*args, **options)
        finally:
            if self.exit_code is ExitCode.DONE:  # else keys may wait for our end
                self._engine.close()
                self._tracer.close()
        return worked

    def _new_runner(self) -> TurnRunner:
        return TurnRunner(
            self._engine,
            self._slot,
            self._turns,
            self._counts,
            self.settings,
            self._clock,
            self.death_penalty_class,
            self._finished,
            self._tracer,
            self._broker.epoch,
        )

    def teardown(self) -> None:
        """As RQ's. From here on this process works on no key. The keys it may still hold are given back when it has
        ended. So it then ends at once, and the process that started it tells RQ.
        """
        self._slot.leave()
        self._turns.stop()
        if self.exit_code is ExitCode.DONE:
            super().teardown()

    def _leave(self, code: ExitCode, reason: object) -> NoReturn:
        """End RQ's loop. The process that renews our leases gives back our keys."""
        log.warning(line("leaving", worker=self.name, code=int(code), reason=reason))
        self.exit_code = code
        raise StopRequested

    # -- the dequeue ----------------------------------------------------------------------------------------------

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[list[Batch], KeyQueue] | None:
        """Claim a batch, or wait for one. None: in burst mode (no ``timeout``) or after ``max_idle_time`` seconds.

        RQ's loop holds what it gets until it gets the next: a list, which is empty by then.
        """
        with self._failures_told():
            return self._dequeue(timeout, max_idle_time)

    @contextmanager
    def _failures_told(self) -> Iterator[None]:
        """RQ's loop ends after an exception that nobody expected as it does in good order. That is not how we ended."""
        try:
            yield
        except StopRequested:
            raise
        except Exception:
            self.exit_code = ExitCode.FAILED
            raise

    def _dequeue(self, timeout: int | None, max_idle_time: int | None) -> tuple[list[Batch], KeyQueue] | None:
        burst, idle_since_ms = timeout is None, self._clock.mono_ms()
        shown = WorkerStatus.BUSY if self._state == WorkerStatus.BUSY else WorkerStatus.IDLE
        self._state, woken = WorkerStatus.IDLE, False
        while not self._stop_requested:
            nothing, self._found_nothing = self._found_nothing and not self._is_interrupted(), False
            if not woken:  # else a key is there: it comes first
                self._look_around(shown)
                self.check_for_suspension(burst)
            reply = Idle.EMPTY if nothing else self._claim()
            if isinstance(reply, Batch):
                return [reply], self._queue_of[reply.queue]
            if reply is Idle.UNKNOWN:
                self._leave(ExitCode.RELEASED, "not registered any more")
            if reply is Idle.DRAIN:
                log.info(line("leaving", worker=self.name, reason="drained"))
                raise StopRequested
            idle_ms, shown = self._clock.mono_ms() - idle_since_ms, WorkerStatus.IDLE
            if (burst and reply is Idle.EMPTY) or (max_idle_time is not None and idle_ms >= max_idle_time * 1_000):
                return None
            if not self._stop_requested:
                woken = self._wait(reply) and not woken
        raise StopRequested

    def _look_around(self, shown: str) -> None:
        try:
            self._exchange(self._broker, shown)
        except EpochOver as over:
            self._leave(ExitCode.EPOCH_OVER, over)

    def _claim(self) -> Batch | Idle:
        return self._take(lambda: self._engine.claim(self._holder, self._keys_max))

    def _take(self, claimed: Claimed) -> Batch | Idle:
        """BUSY from before the claim: a request to stop must not interrupt it and leave keys locked."""
        self._state = WorkerStatus.BUSY
        self._slot.begin(self._clock.mono_ms())
        try:
            reply = claimed()
        except EpochOver as over:
            self._leave(ExitCode.EPOCH_OVER, over)
        except (BrokerFull, BrokerBusy):
            reply = Idle.WAIT  # nothing was taken
        except (BrokerUnreachable, RedisError) as error:
            self._leave(ExitCode.UNSURE, error)
        if isinstance(reply, Idle):
            self._slot.end()
            self._state = WorkerStatus.IDLE
        else:
            self._counts.claimed(reply)
        return reply

    def _wait(self, why: Idle) -> bool:
        """Whether a token ended it."""
        try:
            if why in (Idle.EMPTY, Idle.LIMITED):
                return self._engine.wait(WAIT_S if why is Idle.EMPTY else LIMITED_S)
            time.sleep(DRAIN_PAUSE_S)
        except EpochOver as over:
            self._leave(ExitCode.EPOCH_OVER, over)
        except (BrokerUnreachable, RedisError):
            time.sleep(DRAIN_PAUSE_S)  # we hold no key: the next claim decides
        return False

    # -- the execution --------------------------------------------------------------------------------------------

    def execute_job(self, job: list[Batch], queue: KeyQueue) -> None:
        """Take the batch and run it, and each that was claimed with the end of the one before. If we cannot go on, the
        process that renews our leases gives back our keys.
        """
        batch: Batch | Idle = job.pop()
        with self._failures_told():
            while isinstance(batch, Batch):
                self._run(batch)
                following, self._following = self._following, None
                batch = Idle.WAIT  # its objects are gone before those of the next are taken apart
                if following is not None:
                    batch, following = self._take(following), None
        self._found_nothing = batch is Idle.EMPTY

    def _run(self, batch: Batch) -> None:
        asked, usual, taken = self._keys_max, self.settings.batch_keys, len(batch.claims)
        after_others = self._last_queue not in ("", batch.queue) and not self._was_slow
        self._keys_max, self._last_queue = usual, batch.queue

        def end_last(finishes: Sequence[Finish], took_ms: int) -> list[int]:
            """The next keys are claimed in the same round trip, unless the worker has something else to do first. So a
            key that was queued again meanwhile stays with the worker that has its children in memory. After a full
            batch with nothing to do there are more such keys. After a slow one there is one, unless it came
            right after a quick one of another queue: then the next is likely of that.
            """
            if self._runner.slow and not after_others:
                self._keys_max = 1
            elif taken >= max(asked, usual) and took_ms <= taken * QUICK_TURN_MS:
                self._keys_max = max(usual, self.settings.batch_keys_quick)
            if any(each.verdict is not OK for each in finishes):
                return self._engine.finish(finishes)
            if self._runner.slow and not (self._rq_trouble or self.should_run_maintenance_tasks):
                # Else, where it is due, another worker gets the key, and would have to read its objects anew.
                self._exchange(self._broker, WorkerStatus.BUSY)
            if self._is_interrupted():
                return self._engine.finish(finishes)
            failures, self._following = self._engine.finish_and_claim(finishes, self._holder, self._keys_max)
            return failures

        try:
            took_ms = self._runner.run(batch, self._more, end_last)
        except EpochOver as over:
            self._leave(ExitCode.EPOCH_OVER, over)
        except (BrokerUnreachable, BrokerFull, RedisError) as error:
            self._leave(ExitCode.UNSURE, error)
        self._heartbeat.tally.worked_s += took_ms / 1_000
        self._was_slow = self._runner.slow
        if self._was_slow and not after_others:
            self._keys_max = 1

    def _is_interrupted(self) -> bool:
        """Whether RQ's loop has something to do before the next claim: to stop or rest, the exchange, or to count its
        jobs.
        """
        stops = self._stop_requested or self._suspended or self._counts_batches
        return stops or self._clock.mono_ms() >= max(self._heartbeat_at_ms, self._silent_until_ms)

    def _more(self, keys_max: int, but: Collection[str], crowded: Collection[str]) -> Batch | Idle:
        """Further keys beside turns that wait for long, unless this worker is to stop or to rest."""
        self._exchange(self._broker, WorkerStatus.BUSY)
        if self.should_run_maintenance_tasks:  # a run may last for hours
            self.run_maintenance_tasks()
        if self._stop_requested or self._suspended:
            return Idle.WAIT
        try:
            reply = self._engine.claim(self._holder, keys_max, but=but, beside=crowded)
        except (BrokerFull, BrokerBusy):
            return Idle.WAIT  # nothing was taken
        if isinstance(reply, Batch):
            self._counts.claimed(reply)
        return reply

    def _end_early(self, turn: UnderWay, why: Exception) -> None:
        self._runner.end_early(turn, why)

    def _finished(self, turn: Ended, in_a_row: int) -> None:
        if turn.failure is None:
            self._heartbeat.tally.succeeded += 1
        else:
            self._heartbeat.tally.failed += 1
            self._report(turn.finish.queue, turn.finish.key, turn.failure, in_a_row)
