"""Turns of a batch side by side: who goes on when, what is ended when, and what becomes of those that wait too long."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from rq.timeouts import BaseDeathPenalty, JobTimeoutException

from oarlock.broker.values.claims import Batch, Claim, Idle
from oarlock.broker.values.errors import BrokerUnreachable, ClaimLost, EpochOver
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.workers.counters.layout import Layout
from oarlock.workers.counters.table import own_row
from oarlock.workers.counters.turn_counts import TurnCounts
from oarlock.workers.counters.turn_slots import TurnSlots
from oarlock.workers.process.settings import Settings
from oarlock.workers.rq.long_turns import LongTurns
from oarlock.workers.turn.engine.runner import Ended, TurnRunner
from oarlock.workers.turn.steps import TurnFailed
from tests.manual_clock import ManualClock

QUEUE = "replicaset"
LAYOUT = Layout()
Script = list[Any]
"""What a turn does, advance by advance: a Future to wait for, an exception to raise, a callable; then it is over."""


def claim_of(key: str) -> Claim:
    return Claim(QUEUE, key, "nonce", None, [], None, "", False, 0)


class NoLimit(BaseDeathPenalty):  # type: ignore[misc]
    """Alarms are for workers/rq/test_turn_limit.py."""

    def setup_death_penalty(self) -> None:
        pass

    def cancel_death_penalty(self) -> None:
        pass


class Turn:
    """Says in ``told`` when it goes on."""

    age_ratios = (1, 3)
    in_function = False

    def __init__(self, claim: Claim, script: Script, told: list[str]) -> None:
        self._claim, self._script, self._told = claim, list(script), told
        self.waits_for: Future[Any] | None = None

    @property
    def key(self) -> str:
        return self._claim.key

    def advance(self) -> Finish | None:
        self._told.append(self._claim.key)
        self.waits_for = None
        while self._script:
            step = self._script.pop(0)
            if isinstance(step, Future):
                self.waits_for = step
                return None
            if isinstance(step, Exception):
                raise step
            step()
        return Finish(self._claim.queue, self._claim.key, self._claim.nonce, Verdict.OK)

    def did(self, failure: str) -> str:
        return f"began, {failure}"

    def abandon(self) -> None:
        if self.waits_for is not None:
            self._told.append(f"{self._claim.key} abandoned")
            self.waits_for.cancel()
            self.waits_for = None


class Rig:
    """``told``: what happened, in order: keys that went on, "end of a b" for calls that ended turns."""

    def __init__(self, on_finish: Callable[[], None] = lambda: None, **settings: Any) -> None:
        self.clock, self.settings, self.told = ManualClock(), Settings(**settings), list[str]()
        self.failures: dict[str, BaseException | None] = {}
        self.scripts: dict[str, Script] = {}
        self.begun: list[weakref.ref[Turn]] = []
        self.slots, self.row = TurnSlots(1), own_row()
        self.shown = LongTurns(None, "w", "rq:worker:w", 480, self.clock, lambda tell: False)  # type: ignore[arg-type]
        self._on_finish = on_finish
        self.runner = TurnRunner(
            self, self.slots[0], self.shown, TurnCounts(self.row), self.settings, self.clock, NoLimit, self._ended
        )

    def start(self, batch: Batch, claim: Claim) -> Turn:
        turn = Turn(claim, self.scripts[claim.key], self.told)
        self.begun.append(weakref.ref(turn))
        return turn

    def took_too_long(self, turn: Turn, limit_s: int) -> None:
        self.told.append(f"{turn.key} took more than {limit_s} s")

    def finish(self, finishes: Any) -> list[int]:
        self.told.append("end of " + " ".join(each.key for each in finishes))
        self._on_finish()
        return [0] * len(finishes)

    def claim(self, holder: str, keys_max: int) -> Batch | Idle:
        raise NotImplementedError

    def wait(self, timeout_s: float) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def _ended(self, turn: Ended, in_a_row: int) -> None:
        self.failures[turn.finish.key] = turn.failure

    def run(self, **scripts: Script) -> list[str]:
        self.scripts = scripts
        self.runner.run(Batch(QUEUE, [claim_of(key) for key in scripts], {}))
        assert self.shown.current is None
        assert self.slots[0].read().since_ms == 0
        return self.told


def answered(future: Future[Any]) -> Callable[[], None]:
    return lambda: future.set_result(None)


def test_while_one_waits_the_others_go_on_and_all_are_ended_in_one_call() -> None:
    first, second = Future[Any](), Future[Any]()
    told = Rig().run(a=[first], b=[second], c=[answered(second)], d=[answered(first)])
    assert told == ["a", "b", "c", "d", "b", "a", "end of c d b a"]


def test_what_is_over_is_gone_with_all_it_had_in_memory() -> None:
    rig, waits = Rig(), Future[Any]()
    rig.run(a=[waits], b=[answered(waits)])
    rig.scripts.clear()
    del waits
    assert [ref() for ref in rig.begun] == [None, None]


def test_ages_of_chosen_pods_are_counted_once_a_turn() -> None:
    rig, asked = Rig(), Future[Any]()
    rig.run(a=[asked], b=[answered(asked)])
    ratios = LAYOUT.age_ratio
    assert sum(rig.row.ints[at] for at in ratios.cells) == 2 * len(Turn.age_ratios)
    assert rig.row.sums[ratios.sum] == 2 * sum(Turn.age_ratios)


def test_answers_come_from_another_thread() -> None:
    rig, asked = Rig(), Future[Any]()
    told = rig.run(a=[asked], b=[threading.Thread(target=answered(asked)).start])
    assert told == ["a", "b", "a", "end of b a"]


def test_what_was_answered_before_it_was_waited_for() -> None:
    asked = Future[Any]()
    asked.set_result(None)
    assert Rig().run(a=[asked, asked], b=[]) == ["a", "b", "a", "a", "end of b a"]


def test_what_is_over_does_not_wait_long_for_the_others() -> None:
    asked = Future[Any]()
    rig = Rig(on_finish=lambda: None if asked.done() else asked.set_result(None))

    def passes() -> None:
        rig.clock.advance(rig.settings.slow_turn_ms)

    told = rig.run(a=[asked], b=[], c=[passes])
    assert told == ["a", "b", "c", "end of b c", "a", "end of a"], "a is answered only after b and c were ended"
    assert not rig.runner.slow, "none of them took longer than that"


def test_a_lost_claim_does_not_make_what_is_over_wait_longer() -> None:
    asked = Future[Any]()
    rig = Rig(on_finish=lambda: None if asked.done() else asked.set_result(None))
    half_ms = rig.settings.slow_turn_ms // 2

    def passes() -> None:
        rig.clock.advance(half_ms)

    told = rig.run(a=[asked], b=[], c=[passes, ClaimLost("c")], d=[passes])
    assert told == ["a", "b", "c", "d", "end of b d", "a", "end of a"]


def test_a_turn_that_kept_the_thread_for_long() -> None:
    rig = Rig()
    told = rig.run(a=[lambda: rig.clock.advance(rig.settings.slow_turn_ms + 1)], b=[])
    assert told == ["a", "end of a", "b", "end of b"]
    assert rig.runner.slow
    rig.run(c=[])
    assert not rig.runner.slow


def test_the_last_turn_is_ended_by_who_claims_with_it_however_slow_it_was() -> None:
    rig = Rig()

    def end_last(finishes: Sequence[Finish], took_ms: int) -> list[int]:
        rig.told.append(f"{took_ms} ms, and a claim")
        return rig.finish(finishes)

    limit_ms = rig.settings.slow_turn_ms
    rig.scripts = {"a": [lambda: rig.clock.advance(limit_ms + 1)], "b": [lambda: rig.clock.advance(limit_ms + 2)]}
    rig.runner.run(Batch(QUEUE, [claim_of("a"), claim_of("b")], {}), None, end_last)
    assert rig.told == ["a", "end of a", "b", f"{2 * limit_ms + 3} ms, and a claim", "end of b"]


def test_nothing_is_claimed_with_the_end_of_the_last_turn_before_a_failure_is_told() -> None:
    rig = Rig()
    limit_ms = rig.settings.slow_turn_ms

    def fail() -> None:
        rig.clock.advance(limit_ms + 1)
        raise ValueError("bug")

    rig.scripts = {"a": [fail], "b": []}
    rig.runner.run(Batch(QUEUE, [claim_of("a"), claim_of("b")], {}), None, lambda finishes, took_ms: pytest.fail("!"))
    assert rig.told == ["a", "end of a", "b", "end of b"]
    assert isinstance(rig.failures["a"], ValueError)


def test_of_a_bounded_queue_one_turn_is_under_way_at_a_time() -> None:
    rig, asked = Rig(concurrent_syncs={QUEUE: 1}), Future[Any]()
    threading.Timer(0.02, answered(asked)).start()
    assert rig.run(a=[asked], b=[]) == ["a", "a", "b", "end of a b"]


def test_one_that_waits_beyond_the_limit_of_a_turn_is_cut_off() -> None:
    """Counted from its beginning, however often it went on."""
    rig, first, second, never = Rig(), Future[Any](), Future[Any](), Future[Any]()
    too_long_ms = rig.settings.turn_limit_ms + 1
    told = rig.run(
        a=[first, answered(second), never],
        b=[answered(first), second, lambda: rig.clock.advance(too_long_ms)],
    )
    assert told == ["a", "b", "a", "b", "end of b", "a took more than 45 s", "a abandoned", "end of a"]
    assert never.cancelled()
    assert isinstance(rig.failures["a"], JobTimeoutException)
    assert rig.failures["b"] is None


def test_one_that_waits_is_ended_early_and_no_other() -> None:
    rig, first, second, why = Rig(), Future[Any](), Future[Any](), RuntimeError("stopped")

    def stop() -> None:
        assert rig.shown.current is not None
        assert rig.shown.current.claim.key == "a"
        rig.runner.end_early(rig.shown.current, why)
        second.set_result(None)

    told = rig.run(a=[first], b=[second], c=[stop])
    assert told == ["a", "b", "c", "a abandoned", "b", "end of c a b"]
    assert first.cancelled()
    assert rig.failures == {"a": why, "b": None, "c": None}


def test_the_turn_in_hand_is_ended_where_it_stands() -> None:
    rig, why = Rig(), RuntimeError("stopped")

    def stop() -> None:
        assert rig.shown.current is not None
        rig.runner.end_early(rig.shown.current, why)

    assert rig.run(a=[stop], b=[]) == ["a", "b", "end of a b"]
    assert rig.failures["a"] is why


def test_one_that_is_over_is_ended_early_no_more() -> None:
    rig, asked = Rig(), Future[Any]()
    over: list[Any] = []
    rig.run(a=[lambda: over.append(rig.shown.current)], b=[lambda: rig.runner.end_early(over[0], RuntimeError())])
    rig.run(c=[asked], d=[lambda: rig.runner.end_early(over[0], RuntimeError()), answered(asked)])
    assert set(rig.failures.values()) == {None}


@pytest.mark.parametrize("error", [EpochOver("stale"), BrokerUnreachable("timeout")], ids=["epoch over", "no answer"])
def test_where_nothing_more_may_be_written_those_that_wait_are_cut_off(error: Exception) -> None:
    rig, asked = Rig(), Future[Any]()
    rig.scripts = {"a": [asked], "b": [error], "c": []}
    with pytest.raises(type(error)):
        rig.runner.run(Batch(QUEUE, [claim_of(key) for key in rig.scripts], {}))
    assert rig.told == ["a", "b", "a abandoned"]
    assert asked.cancelled()


def test_an_end_without_an_answer_cuts_off_those_that_wait() -> None:
    asked = Future[Any]()

    def unreachable() -> None:
        raise BrokerUnreachable("timeout")

    rig = Rig(on_finish=unreachable)
    rig.scripts = {"a": [asked], "b": [lambda: rig.clock.advance(rig.settings.slow_turn_ms + 1)]}
    with pytest.raises(BrokerUnreachable):
        rig.runner.run(Batch(QUEUE, [claim_of(key) for key in rig.scripts], {}))
    assert rig.told == ["a", "b", "end of b", "a abandoned"]


def test_failures_are_their_own() -> None:
    """A lost claim is not ended; a failure after an answer keeps what the turn says; another keeps nothing."""
    rig, asked = Rig(), Future[Any]()
    kept = Finish(QUEUE, "b", "nonce", Verdict.GONE)
    failed, bug = TurnFailed("quota", kept), ValueError("bug")
    told = rig.run(a=[asked, ClaimLost("a")], b=[asked, failed], c=[asked, bug], d=[answered(asked)])
    assert told == ["a", "b", "c", "d", "a", "b", "c", "end of d b c"]
    assert rig.failures == {"d": None, "b": failed, "c": bug}


def test_who_is_told_is_told_when_none_waits_any_more() -> None:
    """RQ's server, or a handler of a user, may take its time: not while requests are under way."""
    asked, seen = Future[Any](), list[bool]()
    rig = Rig(on_finish=lambda: None if asked.done() else asked.set_result(None))
    rig.runner._on_finish = lambda turn, in_a_row: seen.append("end of a" in rig.told)
    rig.run(a=[asked], b=[], c=[lambda: rig.clock.advance(rig.settings.slow_turn_ms)])
    assert rig.told.index("end of b c") < rig.told.index("end of a")
    assert seen == [True, True, True]


def test_what_runs_now_is_the_oldest_of_them() -> None:
    """For the metric of the longest turn under way, and for RQ, which knows of one job a worker."""
    rig, asked, seen = Rig(), Future[Any](), list[tuple[str, bool]]()
    since_at = rig.row.layout.turn_since_ns

    def look() -> None:
        assert rig.shown.current is not None
        seen.append((rig.shown.current.claim.key, rig.row.ints[since_at] > 0))

    rig.run(a=[asked], b=[look], c=[answered(asked)], d=[look])
    assert seen == [("a", True), ("a", True)]
    assert rig.row.ints[since_at] == 0
