"""Runs a batch of turns in one thread: while one waits for the API, others go on; finished turns end in one call."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rq.timeouts import BaseDeathPenalty, JobTimeoutException

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, Claim, Idle
from oarlock.broker.values.errors import BrokerUnreachable, ClaimLost, EpochOver
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.cluster.http.flight import RequestObserver
from oarlock.workers.counters.request_counts import RequestCounts
from oarlock.workers.counters.turn_counts import TurnCounts
from oarlock.workers.counters.turn_slots import TurnSlot
from oarlock.workers.process.clock import Clock, SystemClock
from oarlock.workers.process.kinds import is_bounded
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings
from oarlock.workers.tracing.tracer import UNTRACED, NoTracer, Tracer, TurnTrace
from oarlock.workers.turn.engine.waiting_turns import UnderWay, WaitingTurns
from oarlock.workers.turn.steps import TurnFailed
from oarlock.workers.turn.turn_note import failed, one_line

if TYPE_CHECKING:  # `rq info` imports this module: it needs no cluster, and no 0.3 s for importing its client
    from oarlock.workers.turn.engine.turn_engine import TurnEngine

log = logging.getLogger("oarlock.worker")

ASK_FIRST_MS, ASK_MS, ASK_SERVED_MS = 5, 50, 250
"""How long turns are waited for before further keys are asked for; after there were none; and after there were none
while another worker waited for them.
"""
NEVER_MS = 1 << 62
LOOK_MS = 100
"""How often the runner looks for turns that have waited for too long."""


class TurnTookTooLong(JobTimeoutException):  # type: ignore[misc]
    """The time of a turn is up: it is given up, and its key is tried again."""

    of_the_turn = True
    """It says nothing of the object that was being decoded (see sdk/types)."""


EngineFactory = Callable[[Settings, RedisBroker, Sequence[str], RequestObserver], "TurnEngine"]
"""Makes the engine of one process for these queues; the observer hears of its requests. Called after the last fork."""


def open_engine(
    settings: Settings, broker: RedisBroker, queues: Sequence[str], observer: RequestObserver
) -> TurnEngine:
    """The engine that talks to the Kubernetes API. Raises ConfigError for unusable credentials, or signing keys."""
    from oarlock.cluster.access import config  # noqa: PLC0415
    from oarlock.workers.budget.limiter import fleet_limiter  # noqa: PLC0415
    from oarlock.workers.process.rights import DRY_RUN, MissingRights, worker_roles  # noqa: PLC0415
    from oarlock.workers.signing.signing_broker import signing_wrapper  # noqa: PLC0415
    from oarlock.workers.turn.engine.api import KubeApi  # noqa: PLC0415
    from oarlock.workers.turn.engine.dry_run import DryRunEngine  # noqa: PLC0415
    from oarlock.workers.turn.engine.engine import Engine  # noqa: PLC0415
    from oarlock.workers.turn.engine.read_api import ReadApi  # noqa: PLC0415
    from oarlock.workers.turn.shadow.recorder import Recorder, version_in  # noqa: PLC0415

    cluster = config.load(Path(settings.kubeconfig) if settings.kubeconfig else None)
    clock = SystemClock()
    rights = MissingRights((DRY_RUN,) if settings.dry_run else worker_roles(queues), clock.mono_ms)
    wrapped = signing_wrapper(settings, clock)(broker)
    if settings.dry_run:
        reads = ReadApi(cluster, settings, on_forbidden=rights, observer=observer)
        record = Recorder(broker.shadow(), lambda: version_in(reads.version()))
        return DryRunEngine(wrapped, reads, settings, clock, queues, record)
    limits, budget = settings.budget, None
    if limits is not None and isinstance(observer, RequestCounts):
        budget = partial(fleet_limiter, observer.row, limits, settings.lease_ms, clock.mono_ms)
    api = KubeApi(cluster, settings, on_forbidden=rights, observer=observer, budget=budget)
    return Engine(wrapped, api, settings, clock, queues)


class Ended(NamedTuple):
    """A turn to be ended in Redis, and what it failed with."""

    finish: Finish
    failure: BaseException | None
    trace: TurnTrace = UNTRACED


More = Callable[[int, Collection[str], Collection[str]], Batch | Idle]
"""Claims at most so many keys beside turns under way, of none of these queues, nor of these namespaces."""

EndLast = Callable[[Sequence[Finish], int], list[int]]
"""As the engine's ``finish``, for the last turns of a batch, with the ms that it took. May claim keys with it."""

OnFinish = Callable[[Ended, int], None]
"""Told of every turn that was ended in Redis, and how many have failed in a row by now; -1: its claim was lost."""


class ShowsTurns(Protocol):
    """Told which turns are under way, to show them to people: ``workers.rq.long_turns.LongTurns``."""

    def begin(self, turn: UnderWay) -> None: ...
    def end(self, turn: UnderWay) -> None: ...


class TurnRunner:
    """One worker's. Main thread only, ``end_early`` in a signal handler of it.

    ``limit``: RQ's death penalty, around all that a turn does. A turn that waits is checked every LOOK_MS instead.
    ``tracer``: told of each turn; without it, nobody is.
    """

    def __init__(
        self,
        engine: TurnEngine,
        slot: TurnSlot,
        shown: ShowsTurns,
        counts: TurnCounts,
        settings: Settings,
        clock: Clock,
        limit: type[BaseDeathPenalty],
        on_finish: OnFinish,
        tracer: Tracer | None = None,
        epoch: int = 0,
    ) -> None:
        self._engine, self._slot, self._shown, self._counts = engine, slot, shown, counts
        self._settings, self._clock, self._limit, self._on_finish = settings, clock, limit, on_finish
        self._tracer, self._epoch = tracer or NoTracer(), epoch
        self._limit_s = max(1, -(-settings.turn_limit_ms // 1_000))
        self._under_way: dict[UnderWay, None] = {}
        self._waiting = WaitingTurns(settings.writes_in_flight)
        self._behind: dict[str, tuple[Batch, deque[Claim]]] = {}
        """By bounded queue: claims that have yet to begin, and their batch."""
        self._to_begin = 0
        """Of the batch in hand."""
        self._stepping: UnderWay | None = None
        self._ended: list[Ended] = []
        self._untold: list[tuple[Ended, int]] = []
        self._more: More | None = None
        self._ended_ms = self._look_ms = self._ask_ms = 0
        """When the first of ``_ended`` was over; when to look again; when to ask for more."""
        self.slow = False
        """Whether a turn of the last batch kept the thread for long by itself."""

    def run(self, batch: Batch, more: More | None = None, end_last: EndLast | None = None) -> int:
        """Run all turns of the batch to their ends. Returns the ms that took, without the last call that ends turns.

        ``more``: asked for further keys while every turn under way waits for a function of a user, or has waited for
        SLOW_MS. A key that crashed a worker stays alone. ``end_last``: makes that last call, unless a failure is to be
        told first.

        Raises EpochOver; BrokerUnreachable, BrokerFull or RedisError if nobody knows what is still locked. Whatever
        ends the batch early, nothing more is sent for any of its turns.
        """
        self.slow, self._more = False, None if any(claim.crashes for claim in batch.claims) else more
        self._behind.clear()
        self._to_begin = 0
        first_ms = now_ms = self._clock.mono_ms()
        self._ask_ms = now_ms + ASK_FIRST_MS
        try:
            now_ms = self._begin_all(batch, now_ms)
            while self._waiting:
                now_ms = self._begin_behind(self._go_on(now_ms))
            took_ms = now_ms - first_ms
            if any(turn.failure is not None for turn, _ in self._untold):
                end_last = None  # to tell of failures may take long, and no key must wait for that under a lock
            self._finish(end_last and (lambda finishes: end_last(finishes, took_ms)))
            self._tell()
        except BaseException as error:
            self._waiting.abandon()
            for trace in [*(each.trace for each in self._under_way), *(each.trace for each in self._ended)]:
                trace.ended("lost", "", type(error).__name__)
            raise
        self._slot.end()
        return took_ms

    def end_early(self, turn: UnderWay, why: Exception) -> None:
        """In a signal handler: a turn that computes is interrupted where it stands; one that waits goes on no more."""
        if turn not in self._under_way:
            return
        if self._stepping is turn:
            raise why
        self._waiting.fail(turn, why)

    def _begin_all(self, batch: Batch, now_ms: int) -> int:
        if is_bounded(self._settings, batch.queue):
            self._behind[batch.queue] = (batch, deque(batch.claims))
            return self._begin_behind(now_ms)
        self._to_begin += len(batch.claims)
        for claim in batch.claims:
            self._to_begin -= 1
            now_ms = self._begin(batch, claim, now_ms)
        return now_ms

    def _begin_behind(self, now_ms: int) -> int:
        """Of a bounded queue one at a time."""
        for queue, (batch, claims) in list(self._behind.items()):
            while claims and not self._waiting.of(queue):
                now_ms = self._begin(batch, claims.popleft(), now_ms)
            if not claims and not self._waiting.of(queue):
                del self._behind[queue]
        return now_ms

    def _take_more(self, now_ms: int) -> int:
        """Claim further keys, if there are any, and places for them."""
        assert self._more is not None
        keys_max = self._settings.batch_keys
        places = self._waiting.places(keys_max) - sum(len(each) for _, each in self._behind.values())
        self._ask_ms = now_ms + ASK_MS
        if places <= 0:
            return now_ms
        self._finish()
        self._tell()
        found, now_ms = self._more(min(keys_max, places), self._behind, self._waiting.crowded()), self._clock.mono_ms()
        if isinstance(found, Batch):
            self._ask_ms = now_ms + ASK_FIRST_MS
            return self._begin_all(found, now_ms)
        self._ask_ms = now_ms + (ASK_SERVED_MS if found is Idle.SERVED else ASK_MS)
        if found is Idle.ALONE:
            self._more = None
        return now_ms

    def _begin(self, batch: Batch, claim: Claim, now_ms: int) -> int:
        each = UnderWay(claim, now_ms, self._counts.begun(), trace=self._tracer.begun(self._epoch, claim))
        if each.trace.trace_id:
            self._counts.traced(batch, claim, each.trace.trace_id)
        self._shown.begin(each)
        self._under_way[each] = None
        return self._run(each, batch, now_ms)

    def _go_on(self, now_ms: int) -> int:
        """Let one waiting turn go on, or let some time pass. A turn that is over does not wait long for the others."""
        if now_ms >= self._look_ms:
            self._look_ms = now_ms + LOOK_MS
            for each in self._waiting.begun_before(now_ms - self._limit_s * 1_000):
                limit = f"Task exceeded maximum timeout value ({self._limit_s} seconds)"
                self._waiting.fail(each, TurnTookTooLong(limit))
        left_ms = self._ended_ms + self._settings.slow_turn_ms - now_ms if self._ended else LOOK_MS
        if left_ms <= 0:
            self._finish()
            left_ms = LOOK_MS
        ask_ms = NEVER_MS
        if self._more is not None and len(self._waiting) < self._waiting.places_max:
            ask_ms = max(self._ask_ms, self._waiting.quick_until_ms(now_ms))
        found = self._waiting.next(max(0, min(left_ms, ask_ms - now_ms)) / 1_000)
        now_ms = self._clock.mono_ms()
        if found is not None:
            return self._run(found, None, now_ms)
        return self._take_more(now_ms) if now_ms >= ask_ms else now_ms

    def _run(self, each: UnderWay, batch: Batch | None, begun_ms: int) -> int:
        """Take a turn as far as it goes without waiting. ``batch``: its batch, if it has yet to begin."""
        claim, first = each.claim, not self._ended
        self._slot.begin(begun_ms, f"{claim.queue}:{claim.key}")
        over = self._advance(each, batch, begun_ms)
        now_ms = self._clock.mono_ms()
        if first:
            self._ended_ms = now_ms
        if over:
            del self._under_way[each]
            oldest = next(iter(self._under_way), None)
            oldest_ns = oldest.begun_ns if oldest is not None else 0
            self._counts.worked(claim.queue, each.begun_ns, oldest_ns, each.trace.trace_id)
            if each.turn is not None:
                self._counts.ranked(claim.queue, each.turn.age_ratios)
            self._shown.end(each)
        limit_ms = self._settings.slow_turn_ms
        self.slow = self.slow or now_ms - begun_ms > limit_ms
        # The last turn is ended in a moment, with the next claim.
        is_last = not (self._under_way or self._to_begin or any(claims for _, claims in self._behind.values()))
        if not is_last and (now_ms - begun_ms > limit_ms or (self._ended and now_ms - self._ended_ms >= limit_ms)):
            self._finish()
            now_ms = self._clock.mono_ms()
        return now_ms

    def _advance(self, each: UnderWay, batch: Batch | None, now_ms: int) -> bool:
        """Whether the turn is over. Then it is in ``_ended``, unless its claim was lost: then others may end it."""
        claim, limit_s = each.claim, max(1, self._limit_s - (now_ms - each.begun_ms) // 1_000)
        try:
            if each.failure is not None:
                raise each.failure
            with self._limit(limit_s, TurnTookTooLong), each.trace.current():
                self._stepping = each
                try:
                    if batch is not None:
                        each.turn = self._engine.start(batch, claim)
                    assert each.turn is not None
                    finish = each.turn.advance()
                finally:
                    self._stepping = None
            if finish is None:
                assert each.turn.waits_for is not None
                self._waiting.add(each, each.turn.waits_for, now_ms)
                return False
            self._ended.append(Ended(finish, None, each.trace))
        except ClaimLost as lost:
            log.warning(line("claim_lost", task=lost))
            self._counts.lost(claim.queue)
            each.trace.ended("lost", "", "another worker has the key")
        except (EpochOver, BrokerUnreachable):
            raise
        except TurnFailed as failed:
            self._ended.append(Ended(failed.finish, failed, each.trace))
        except Exception as error:  # the edge of a turn: whatever it was, the key is tried again
            if each.turn is not None:
                if isinstance(error, TurnTookTooLong) and each.turn.waits_for is not None:
                    self._engine.took_too_long(each.turn, self._limit_s)
                each.turn.abandon()
            self._ended.append(Ended(_retried(each, error), error, each.trace))
        return True

    def _finish(self, end: Callable[[Sequence[Finish]], list[int]] | None = None) -> None:
        """End turns in one call. If it has no answer, nobody knows what is still locked; a release then unlocks it."""
        if not self._ended:
            return
        ended, self._ended = self._ended, []
        self._slot.begin(self._clock.mono_ms())
        failures = (end or self._engine.finish)([turn.finish for turn in ended])
        for turn, in_a_row in zip(ended, failures, strict=True):
            self._counts.finished(turn.finish, turn.failure is not None, in_a_row)
            if turn.trace is not UNTRACED:
                verdict = turn.finish.verdict.value if in_a_row >= 0 else "lost"
                turn.trace.ended(verdict, turn.finish.did, str(turn.failure or ""))
            self._untold.append((turn, in_a_row))

    def _tell(self) -> None:
        """Report ended turns, once no turn waits any more: the callback may take its time."""
        told, self._untold = self._untold, []
        for turn, in_a_row in told:
            self._on_finish(turn, in_a_row)


def _retried(each: UnderWay, error: Exception) -> Finish:
    claim, why = each.claim, f"{type(error).__name__}: {error}"
    did = each.turn.did(why) if each.turn is not None else one_line(failed(why))
    return Finish(claim.queue, claim.key, claim.nonce, Verdict.RETRY, did=did)
