"""What a worker makes of each outcome of a claim, a turn and a finish. In this process, in burst mode."""

from __future__ import annotations

import signal
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from rq.suspension import WORKERS_SUSPENDED
from rq.worker import BaseWorker, SimpleWorker, WorkerStatus

from oarlock.broker import epoch
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, Claim, Claimed, Idle
from oarlock.broker.values.errors import BrokerFull, BrokerUnreachable, ClaimLost, EpochOver
from oarlock.broker.values.turns import Change, Finish, Verdict
from oarlock.workers.counters.turn_slots import TurnSlots
from oarlock.workers.epoch.identity import Identity
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.exit_code import ExitCode, ForcedStop
from oarlock.workers.process.settings import Settings
from oarlock.workers.rq.client import open_rq_client
from oarlock.workers.rq.failed_turns import FailedTurns
from oarlock.workers.rq.heartbeat import Heard, Heartbeat
from oarlock.workers.rq.worker import KeyWorker
from oarlock.workers.rq.worker_lists import enter_again
from oarlock.workers.turn.steps import TurnFailed
from tests.manual_clock import ManualClock
from tests.workers.fleet_puppet import QUEUE
from tests.workers.fleet_rig import Rig

Act = Callable[[Claim], Finish]


def claim_of(key: str) -> Claim:
    return Claim(QUEUE, key, "nonce", None, [], None, "", False, 0)


def batch_of(*keys: str) -> Batch:
    return Batch(QUEUE, [claim_of(key) for key in keys], {})


def ok(claim: Claim) -> Finish:
    return Finish(claim.queue, claim.key, claim.nonce, Verdict.OK)


class ScriptedTurn:
    """What it does it does at once: turns that wait are turn/engine/test_runner.py's."""

    age_ratios = ()

    def __init__(self, claim: Claim, act: Act) -> None:
        self._claim, self._act = claim, act
        self.waits_for: Future[Any] | None = None

    def advance(self) -> Finish:
        return self._act(self._claim)

    def abandon(self) -> None:
        """It waits for nothing."""

    def did(self, failure: str) -> str:
        return failure


class ScriptedEngine:
    """Hands out ``replies`` in order, then EMPTY; a turn over a key does what ``acts`` says of it."""

    def __init__(self, replies: Sequence[Any], acts: dict[str, Act], finish_error: Exception | None = None) -> None:
        self.replies, self.acts, self.finish_error = list(replies), acts, finish_error
        self.asked_for: list[int] = []
        self.turns: list[str] = []
        self.finished: list[list[Finish]] = []
        self.failures = self.together = 0
        """``together``: ends of turns that came with a claim."""
        self.closed = False

    def claim(self, holder: str, keys_max: int, **beside: Any) -> Batch | Idle:
        self.asked_for.append(keys_max)
        reply = self.replies.pop(0) if self.replies else Idle.EMPTY
        if isinstance(reply, Exception):
            raise reply
        return reply

    def start(self, batch: Batch, claim: Claim) -> ScriptedTurn:
        self.turns.append(claim.key)
        return ScriptedTurn(claim, self.acts.get(claim.key, ok))

    def finish(self, finishes: Sequence[Finish]) -> list[int]:
        if self.finish_error is not None:
            raise self.finish_error
        self.finished.append(list(finishes))
        return [self.failures if each.verdict is Verdict.RETRY else 0 for each in finishes]

    def finish_and_claim(self, finishes: Sequence[Finish], holder: str, keys_max: int) -> tuple[list[int], Claimed]:
        self.together += 1
        return self.finish(finishes), partial(self.claim, holder, keys_max)

    def wait(self, timeout_s: float) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def raising(error: BaseException) -> Act:
    def act(claim: Claim) -> Finish:
        raise error

    return act


@pytest.fixture
def run(rig: Rig) -> Iterator[Callable[..., KeyWorker]]:
    """Work in burst mode with an engine; returns the worker when it has left."""
    slots = TurnSlots(1)
    handlers = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}

    def work(engine: ScriptedEngine, clock: Clock | None = None, **options: Any) -> KeyWorker:
        class Worker(KeyWorker):
            @staticmethod
            def engine_factory(
                settings: Settings, broker: RedisBroker, queues: Sequence[str], observer: object
            ) -> ScriptedEngine:
                return engine

        identity = Identity("w-test", "test", epoch.current(rig.admin), slots[0])
        worker = Worker(
            [QUEUE],
            "w-test",
            connection=open_rq_client(rig.settings),
            settings=rig.settings,
            identity=identity,
            clock=clock,
        )
        worker.work(burst=True, **options)
        assert slots[0].read().since_ms == 0
        assert engine.closed is (worker.exit_code is ExitCode.DONE)
        return worker

    yield work
    for signum, handler in handlers.items():
        signal.signal(signum, handler)


def test_a_batch_is_ended_in_one_call(run: Callable[..., KeyWorker]) -> None:
    engine = ScriptedEngine([batch_of("a/1", "a/2", "a/3"), batch_of("a/4")], {})
    worker = run(engine)
    assert [[each.key for each in call] for call in engine.finished] == [["a/1", "a/2", "a/3"], ["a/4"]]
    assert engine.asked_for == [8, 8, 8]
    assert worker.exit_code is ExitCode.DONE


class Claims(list[Claim]):
    """There are weak references to it, and none to a list."""


def test_a_batch_is_gone_before_the_next_is_read(run: Callable[..., KeyWorker]) -> None:
    """It may have tens of thousands of objects. Neither RQ's loop nor ours holds on to it."""
    batches = [batch_of("a/1"), batch_of("a/2"), batch_of("a/3")]
    batches = [replace(each, claims=Claims(each.claims)) for each in batches]
    refs, alive = [weakref.ref(each.claims) for each in batches], []

    class Watched(ScriptedEngine):
        def claim(self, holder: str, keys_max: int, **beside: Any) -> Batch | Idle:
            alive.append(sum(ref() is not None for ref in refs))
            return super().claim(holder, keys_max, **beside)

    engine = Watched(batches, {})
    batches.clear()
    run(engine)
    assert alive == [3, 2, 1, 0]


def test_a_worker_takes_more_while_there_is_nothing_to_do(run: Callable[..., KeyWorker]) -> None:
    """Only after a full batch of quick turns: 8 keys, then 64, then 8 again as soon as a turn asked the API."""
    clock = ManualClock()

    def asking(claim: Claim) -> Finish:
        clock.advance(33)
        return ok(claim)

    full = [batch_of(*(f"a/{number}" for number in range(size))) for size in (8, 64, 64)]
    engine = ScriptedEngine([*full[:2], batch_of("a/1"), full[0], full[2]], {"a/63": asking})
    run(engine, clock)
    assert engine.asked_for == [8, 64, 8, 8, 64, 8], "the second full batch of 64 held a turn of 33 ms"


def full(*names: str) -> Batch:
    """Eight keys, and nothing to do about them."""
    return batch_of(*(f"a/{name}" for name in names or "12345678"))


def test_the_next_batch_is_claimed_with_the_end_of_the_one_before(run: Callable[..., KeyWorker]) -> None:
    """Of a slow one, too. The last claim brings nothing, and is not made again."""
    clock = ManualClock()

    def slow(claim: Claim) -> Finish:
        clock.advance(51)
        return ok(claim)

    engine = ScriptedEngine([full(), batch_of("a/9"), batch_of("a/10")], {"a/9": slow})
    run(engine, clock)
    assert [[each.key for each in call] for call in engine.finished[1:]] == [["a/9"], ["a/10"]]
    assert (engine.together, engine.asked_for) == (3, [8, 64, 1, 8])


def test_a_claim_that_was_not_to_be_is_made_again_after_all_else(run: Callable[..., KeyWorker]) -> None:
    engine = ScriptedEngine([full(), Idle.WAIT, batch_of("a/9")], {})
    run(engine, ManualClock())
    assert engine.together == 2
    assert engine.turns[-1] == "a/9"


def test_a_worker_that_counts_its_batches_claims_none_with_an_end(run: Callable[..., KeyWorker]) -> None:
    engine = ScriptedEngine([full(), full()], {})
    run(engine, ManualClock(), max_jobs=1)
    assert (engine.together, len(engine.turns)) == (0, 8)


def test_a_worker_that_is_to_stop_claims_none_with_an_end(run: Callable[..., KeyWorker]) -> None:
    """What it has claimed by then it works off."""

    def stopped(claim: Claim) -> Finish:
        signal.raise_signal(signal.SIGTERM)
        return ok(claim)

    engine = ScriptedEngine([full(), full("9"), full()], {"a/8": stopped})
    run(engine, ManualClock())
    assert (engine.together, len(engine.turns)) == (0, 8)

    engine = ScriptedEngine([full(), full("9"), full()], {"a/9": stopped})
    run(engine, ManualClock())
    assert (engine.together, len(engine.turns)) == (1, 9)


def test_a_worker_that_is_to_rest_claims_none_with_an_end(run: Callable[..., KeyWorker], rig: Rig) -> None:
    """`rq suspend` came in its turn, and the exchange with RQ comes before the claim."""
    clock = ManualClock()

    def suspended(claim: Claim) -> Finish:
        rig.admin.set(WORKERS_SUSPENDED, "1")
        clock.advance(500)
        return ok(claim)

    engine = ScriptedEngine([batch_of("a/1"), batch_of("a/2")], {"a/1": suspended})
    run(engine, clock)
    assert (engine.together, engine.turns) == (0, ["a/1"])


def test_the_exchange_with_rq_comes_in_its_time(run: Callable[..., KeyWorker]) -> None:
    """Twice a second, so of batches of 15 ms one in 34 ends without a claim."""
    clock = ManualClock()

    def quick(claim: Claim) -> Finish:
        clock.advance(15)
        return ok(claim)

    batches = [batch_of(*(f"a/{number}" for number in range(size))) for size in (8, *[64] * 99)]
    engine = ScriptedEngine(batches, {"a/63": quick})
    run(engine, clock)
    assert len(engine.turns) == 8 + 99 * 64
    assert engine.together == 100 - 2


SLOW_TURNS = 4


@pytest.mark.parametrize(
    ("trouble", "together", "code"),
    [
        pytest.param(None, SLOW_TURNS, ExitCode.DONE, id="no claim is left out for it"),
        pytest.param(RedisError("away"), 1, ExitCode.DONE, id="RQ is silent: from then on it is asked without a key"),
        pytest.param(EpochOver("stale"), 0, ExitCode.EPOCH_OVER, id="the epoch is over"),
    ],
)
def test_after_a_slow_turn_the_exchange_with_rq_comes_before_its_end(
    run: Callable[..., KeyWorker],
    monkeypatch: pytest.MonkeyPatch,
    trouble: Exception | None,
    together: int,
    code: ExitCode,
) -> None:
    """Else another worker would get the key's next turn, and have to read its objects anew."""
    clock, beats, beat = ManualClock(), [0], Heartbeat.beat

    def counted(heartbeat: Heartbeat, state: str) -> Heard:
        beats[0] += 1
        if trouble is not None and beats[0] > 1 and state == WorkerStatus.BUSY:
            raise trouble
        return beat(heartbeat, state)

    def slow(claim: Claim) -> Finish:
        clock.advance(500)
        return ok(claim)

    monkeypatch.setattr(Heartbeat, "beat", counted)
    engine = ScriptedEngine(
        [batch_of(f"a/{n}") for n in range(SLOW_TURNS)], {f"a/{n}": slow for n in range(SLOW_TURNS)}
    )
    worker = run(engine, clock)
    assert (engine.together, worker.exit_code) == (together, code)
    assert len(engine.finished) == (SLOW_TURNS if code is ExitCode.DONE else 0)


def test_a_silent_rq_is_asked_again_after_a_pause(
    run: Callable[..., KeyWorker], rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time it may hold the worker up; and a turn that fails meanwhile is not told to it either."""
    clock, asked, beat, told = ManualClock(), [], Heartbeat.beat, []

    def away(heartbeat: Heartbeat, state: str) -> Heard:
        asked.append(clock.mono_ms())
        if 1 < len(asked) < 4:
            raise RedisConnectionError("away")
        return beat(heartbeat, state)

    def failed(claim: Claim) -> Finish:
        clock.advance(1_000)
        raise ValueError("no")

    monkeypatch.setattr(Heartbeat, "beat", away)
    monkeypatch.setattr(FailedTurns, "add", lambda *args: told.append(clock.mono_ms()))
    keys = [f"a/{n}" for n in range(20)]
    engine = ScriptedEngine([batch_of(key) for key in keys], dict.fromkeys(keys, failed))
    engine.failures = rig.settings.failed_after
    begun = clock.mono_ms()
    run(engine, clock)
    first = asked[1]
    assert asked[1:4] == [first, first + 5_000, first + 10_000], [each - begun for each in asked]
    assert len(engine.finished) == 20
    assert told
    # Not in the same millisecond: that turn had failed before RQ was asked.
    assert not [each for each in told if first < each < first + 5_000 or first + 5_000 < each < first + 10_000]


def test_a_worker_that_began_in_silence_is_entered_however_often_that_fails(
    run: Callable[..., KeyWorker], rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heartbeat makes its hash, so that alone does not tell whether RQ's lists have it."""
    clock, seen, entered = ManualClock(), [], list[int]()

    def silent(worker: BaseWorker) -> None:
        raise RedisTimeoutError("late")

    def enter(worker: BaseWorker) -> None:
        entered.append(clock.mono_ms())
        if len(entered) == 1:
            raise RedisTimeoutError("late")
        enter_again(worker)

    def slow(claim: Claim) -> Finish:
        clock.advance(1_000)
        seen.append(rig.workers())
        return ok(claim)

    monkeypatch.setattr(BaseWorker, "register_birth", silent)
    monkeypatch.setattr("oarlock.workers.rq.shell.enter_again", enter)
    keys = [f"a/{n}" for n in range(14)]
    run(ScriptedEngine([batch_of(key) for key in keys], dict.fromkeys(keys, slow)), clock)
    assert entered == [entered[0], entered[0] + 5_000]
    assert (seen[0], seen[-1]) == (set(), {"w-test"})


def test_maintenance_that_fails_is_not_tried_at_every_turn(
    run: Callable[..., KeyWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, tried = ManualClock(), list[int]()

    def late(worker: BaseWorker) -> None:
        tried.append(clock.mono_ms())
        raise RedisTimeoutError("late")

    def slow(claim: Claim) -> Finish:
        clock.advance(1_000)
        return ok(claim)

    monkeypatch.setattr("oarlock.workers.rq.shell.clean_up", late)
    keys = [f"a/{n}" for n in range(14)]
    run(ScriptedEngine([batch_of(key) for key in keys], dict.fromkeys(keys, slow)), clock)
    assert len(tried) == 1


def test_maintenance_is_for_rq_s_loop_when_no_key_is_held(
    run: Callable[..., KeyWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, engine, cleaned = ManualClock(), ScriptedEngine([batch_of("a/1"), batch_of("a/2")], {}), []

    def slow(claim: Claim) -> Finish:
        clock.advance(500)
        return ok(claim)

    def clean(worker: KeyWorker) -> None:
        cleaned.append(len(engine.finished))

    monkeypatch.setattr(KeyWorker, "should_run_maintenance_tasks", property(lambda worker: True))
    monkeypatch.setattr(KeyWorker, "run_maintenance_tasks", clean)
    engine.acts = {"a/1": slow, "a/2": slow}
    run(engine, clock)
    assert engine.together == 0
    assert {1, 2} <= set(cleaned)


@pytest.mark.parametrize(
    ("woken", "expected"), [(True, "look CW CW look CW CW look C"), (False, "look CW look CW look CW look CW look C")]
)
def test_a_key_that_ends_a_wait_is_claimed_first(
    run: Callable[..., KeyWorker], monkeypatch: pytest.MonkeyPatch, woken: bool, expected: str
) -> None:
    """Before the exchange with RQ, which half of the time would be due. Not again, where there was none for us."""
    engine, told = ScriptedEngine([Idle.LIMITED] * 4, {}), []

    def wait(timeout_s: float) -> bool:
        told.append("CW")
        return woken

    monkeypatch.setattr(engine, "wait", wait)
    monkeypatch.setattr(KeyWorker, "_look_around", lambda worker, shown: told.append("look"))
    run(engine)
    assert " ".join([*told, "C"]) == expected


def test_before_further_keys_a_failure_is_told(run: Callable[..., KeyWorker]) -> None:
    """To tell RQ of many may take long, and keys must not wait for that under a lock."""
    engine = ScriptedEngine([full(), batch_of("a/9")], {"a/3": raising(ValueError("bug"))})
    run(engine, ManualClock())
    assert (engine.together, len(engine.turns)) == (1, 9), "with the end of the second batch alone"


def test_a_failure_of_the_worker_itself_is_no_end_in_good_order(run: Callable[..., KeyWorker]) -> None:
    """RQ's loop logs a traceback, and then ends as if it had been asked to."""
    worker = run(ScriptedEngine([batch_of("a/1"), AssertionError("a bug")], {}))
    assert worker.exit_code is ExitCode.FAILED


@pytest.mark.parametrize(
    ("reply", "proven"), [(BrokerUnreachable("max number of clients reached"), False), (Idle.EMPTY, True)]
)
def test_who_was_never_answered_a_claim_has_not_proven_that_it_can_work(
    run: Callable[..., KeyWorker], reply: Exception | Idle, proven: bool
) -> None:
    """Else the next one is begun a tenth of a second later, and so for as long as Redis takes no more clients."""
    identity = run(ScriptedEngine([reply], {})).identity
    assert identity is not None
    assert identity.slot.proven is proven


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(EpochOver("stale"), ExitCode.EPOCH_OVER, id="epoch over"),
        pytest.param(BrokerUnreachable("timeout"), ExitCode.UNSURE, id="no answer"),
        pytest.param(ResponseError("bug in a script"), ExitCode.UNSURE, id="an answer nobody expected"),
        pytest.param(BrokerFull("full"), ExitCode.DONE, id="nothing was taken"),
    ],
)
def test_what_a_claim_with_an_end_meets_is_told_apart_from_the_end(
    run: Callable[..., KeyWorker], error: Exception, code: ExitCode
) -> None:
    engine = ScriptedEngine([full(), error], {})
    worker = run(engine, ManualClock())
    assert worker.exit_code is code
    assert len(engine.finished) == 1
    assert engine.together == 1


def test_a_worker_of_slow_turns_takes_one_key_at_a_time(run: Callable[..., KeyWorker]) -> None:
    """And what it has done is ended at once, not with the batch."""
    clock = ManualClock()

    def slow(claim: Claim) -> Finish:
        clock.advance(51)
        return ok(claim)

    engine = ScriptedEngine([batch_of("a/1", "a/2"), batch_of("a/3"), batch_of("a/4")], {"a/2": slow, "a/3": slow})
    run(engine, clock)
    assert engine.asked_for == [8, 1, 1, 8]
    assert [[each.key for each in call] for call in engine.finished] == [["a/1", "a/2"], ["a/3"], ["a/4"]]


def test_where_queues_take_turns_a_slow_one_leaves_the_others_their_batches(run: Callable[..., KeyWorker]) -> None:
    clock = ManualClock()

    def slow(claim: Claim) -> Finish:
        clock.advance(51)
        return ok(claim)

    others = [replace(batch_of(key), queue="other") for key in ("b/1", "b/2")]
    batches = [batch_of("a/1"), others[0], batch_of("a/2"), others[1], batch_of("a/3"), batch_of("a/4")]
    engine = ScriptedEngine(batches, {f"a/{number}": slow for number in range(1, 5)})
    run(engine, clock)
    assert engine.asked_for == [8, 1, 8, 8, 8, 8, 1]


def test_a_lost_claim_is_neither_ended_nor_counted(run: Callable[..., KeyWorker]) -> None:
    engine = ScriptedEngine([batch_of("a/1", "a/2")], {"a/1": raising(ClaimLost("a/1"))})
    run(engine)
    assert [[each.key for each in call] for call in engine.finished] == [["a/2"]]


def test_an_exception_is_a_failed_turn_that_keeps_nothing(run: Callable[..., KeyWorker]) -> None:
    engine = ScriptedEngine([batch_of("a/1", "a/2")], {"a/1": raising(ValueError("bug"))})
    run(engine)
    assert engine.finished == [
        [Finish(QUEUE, "a/1", "nonce", Verdict.RETRY, did="ValueError: bug"), ok(claim_of("a/2"))]
    ]


def test_a_turn_that_failed_keeps_what_it_had_settled(run: Callable[..., KeyWorker]) -> None:
    kept = Finish(QUEUE, "a/1", "nonce", Verdict.RETRY, None, (Change.drop("create pods/x"),))
    engine = ScriptedEngine([batch_of("a/1")], {"a/1": raising(TurnFailed("quota", kept))})
    run(engine)
    assert engine.finished == [[kept]]


def test_the_failed_registry_is_entered_after_the_fifth_failure_in_a_row(
    run: Callable[..., KeyWorker], rig: Rig
) -> None:
    for in_a_row, entries in ((4, 0), (5, 1), (6, 1)):
        engine = ScriptedEngine([batch_of("a/1")], {"a/1": raising(ValueError("bug"))})
        engine.failures = in_a_row
        run(engine)
        assert rig.admin.zcard(f"rq:failed:{QUEUE}") == entries


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(EpochOver("stale"), ExitCode.EPOCH_OVER, id="epoch over"),
        pytest.param(BrokerUnreachable("timeout"), ExitCode.UNSURE, id="no answer"),
        pytest.param(ResponseError("bug in a script"), ExitCode.UNSURE, id="an answer nobody expected"),
    ],
)
def test_after_a_claim_without_a_clear_answer_the_worker_leaves(
    run: Callable[..., KeyWorker], error: Exception, code: ExitCode
) -> None:
    """Keys may be locked under its name that it does not know of: only its release gives them back."""
    engine = ScriptedEngine([error, batch_of("a/1")], {})
    assert run(engine).exit_code is code
    assert engine.turns == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(EpochOver("stale"), ExitCode.EPOCH_OVER, id="epoch over"),
        pytest.param(BrokerUnreachable("timeout"), ExitCode.UNSURE, id="no answer"),
    ],
)
def test_a_turn_without_redis_ends_the_batch_and_sends_nothing_more(
    run: Callable[..., KeyWorker], error: Exception, code: ExitCode
) -> None:
    engine = ScriptedEngine([batch_of("a/1", "a/2", "a/3")], {"a/2": raising(error)})
    assert run(engine).exit_code is code
    assert engine.turns == ["a/1", "a/2"]
    assert engine.finished == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(EpochOver("stale"), ExitCode.EPOCH_OVER, id="epoch over"),
        pytest.param(BrokerUnreachable("timeout"), ExitCode.UNSURE, id="no answer"),
    ],
)
def test_after_a_finish_without_an_answer_the_worker_leaves(
    run: Callable[..., KeyWorker], error: Exception, code: ExitCode
) -> None:
    engine = ScriptedEngine([batch_of("a/1"), batch_of("a/2")], {}, finish_error=error)
    assert run(engine).exit_code is code
    assert engine.turns == ["a/1"]


def test_a_released_worker_leaves(run: Callable[..., KeyWorker]) -> None:
    assert run(ScriptedEngine([Idle.UNKNOWN], {})).exit_code is ExitCode.RELEASED


def test_draining_and_a_full_redis_are_waited_out(run: Callable[..., KeyWorker]) -> None:
    engine = ScriptedEngine([Idle.WAIT, BrokerFull("full"), batch_of("a/1")], {})
    assert run(engine).exit_code is ExitCode.DONE
    assert engine.turns == ["a/1"]


def test_a_request_to_stop_in_a_turn_lets_the_batch_end(run: Callable[..., KeyWorker]) -> None:
    def stop(claim: Claim) -> Finish:
        signal.raise_signal(signal.SIGTERM)
        return ok(claim)

    engine = ScriptedEngine([batch_of("a/1", "a/2"), batch_of("a/3")], {"a/1": stop})
    run(engine)
    assert engine.turns == ["a/1", "a/2"]
    assert [len(call) for call in engine.finished] == [2]


def test_rq_without_its_server_does_not_keep_turns_from_being_run(
    run: Callable[..., KeyWorker], rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RQ's keys may be on another server than ours; they only show what happens."""

    def cut(claim: Claim) -> Finish:
        rig.admin.execute_command("ACL", "SETUSER", "worker", "-hset", "-zadd", "-lrange")
        raise ValueError("bug")

    engine = ScriptedEngine([batch_of("a/1", "a/2"), batch_of("a/3")], {"a/1": cut})
    engine.failures = 9
    assert run(engine).exit_code is ExitCode.DONE
    assert engine.turns == ["a/1", "a/2", "a/3"]


def test_a_worker_whose_rq_keys_vanish_enters_itself_again(run: Callable[..., KeyWorker], rig: Rig) -> None:
    def wipe(claim: Claim) -> Finish:
        rig.admin.delete(*rig.admin.keys("rq:*"))
        return ok(claim)

    seen: list[set[str]] = []

    def look(claim: Claim) -> Finish:
        seen.append(rig.workers())
        return ok(claim)

    engine = ScriptedEngine([batch_of("a/1"), *[Idle.WAIT] * 5, batch_of("a/2")], {"a/1": wipe, "a/2": look})
    run(engine)
    assert seen == [{"w-test"}]
    assert rig.admin.sismember("rq:queues", f"rq:queue:{QUEUE}")


def test_a_second_request_to_stop_is_told_from_what_functions_raise(
    run: Callable[..., KeyWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(worker: KeyWorker, signum: int, frame: object) -> None:
        raise SystemExit

    monkeypatch.setattr(SimpleWorker, "request_force_stop", stops)
    worker = run(ScriptedEngine([], {}))
    with pytest.raises(ForcedStop):
        worker.request_force_stop(signal.SIGTERM, None)
