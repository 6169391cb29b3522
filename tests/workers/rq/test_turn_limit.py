"""The limit of a turn is RQ's death penalty, but its signal never hits what is no turn, nor a turn before its time."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from rq.timeouts import JobTimeoutException

from oarlock.workers.rq.turn_limit import TurnLimit
from tests.manual_clock import ManualClock


@pytest.fixture(autouse=True)
def clock() -> Iterator[ManualClock]:
    before, clock = signal.getsignal(signal.SIGALRM), ManualClock()
    TurnLimit.install(clock)
    yield clock
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def left_s() -> float:
    """Until the alarm; 0: none is set."""
    return signal.getitimer(signal.ITIMER_REAL)[0]


def overrun(clock: ManualClock, ms: int) -> None:
    with TurnLimit(7, JobTimeoutException):
        clock.advance(ms)
        signal.raise_signal(signal.SIGALRM)


def test_the_signal_ends_a_turn_that_is_over_its_time(clock: ManualClock) -> None:
    with pytest.raises(JobTimeoutException, match=r"maximum timeout value \(7 seconds\)"):
        overrun(clock, 7_000)


def test_the_alarm_of_an_earlier_turn_is_set_again_for_the_rest(clock: ManualClock) -> None:
    with TurnLimit(700, JobTimeoutException):
        assert 600 < left_s() <= 700
    clock.advance(500_000)
    with TurnLimit(700, JobTimeoutException):
        clock.advance(200_000)
        signal.raise_signal(signal.SIGALRM)
        assert 400 < left_s() <= 500
        clock.advance(500_000)
        with pytest.raises(JobTimeoutException):
            signal.raise_signal(signal.SIGALRM)


def test_a_shorter_limit_has_an_alarm_of_its_own(clock: ManualClock) -> None:
    with TurnLimit(4_500, JobTimeoutException):
        pass
    with TurnLimit(700, JobTimeoutException):
        assert 600 < left_s() <= 700


def test_an_alarm_that_should_have_come_is_not_relied_on(clock: ManualClock) -> None:
    """A host that slept: its timers did not move meanwhile."""
    with TurnLimit(4_500, JobTimeoutException):
        pass
    clock.advance(360_000_000)
    with TurnLimit(700, JobTimeoutException):
        assert 600 < left_s() <= 700


def test_a_late_signal_hits_nobody(clock: ManualClock) -> None:
    with TurnLimit(700, JobTimeoutException):
        pass
    clock.advance(6_000_000)
    signal.raise_signal(signal.SIGALRM)


def test_a_signal_between_turns_leaves_the_next_one_with_an_alarm(clock: ManualClock) -> None:
    with TurnLimit(700, JobTimeoutException):
        pass
    signal.raise_signal(signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, 0)
    with TurnLimit(700, JobTimeoutException):
        assert 600 < left_s() <= 700
