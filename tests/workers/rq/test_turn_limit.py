"""The limit of a turn is RQ's death penalty, but its signal never hits what is no turn."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from rq.timeouts import JobTimeoutException

from oarlock.workers.rq.turn_limit import TurnLimit


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    TurnLimit.install()
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def overrun() -> None:
    with TurnLimit(7, JobTimeoutException):
        assert signal.alarm(7) > 0, "the alarm was set"
        signal.raise_signal(signal.SIGALRM)


def test_the_signal_ends_the_turn() -> None:
    with pytest.raises(JobTimeoutException, match=r"maximum timeout value \(7 seconds\)"):
        overrun()


def test_no_alarm_outlives_the_turn() -> None:
    with TurnLimit(7, JobTimeoutException):
        pass
    assert signal.alarm(0) == 0


def test_a_late_signal_hits_nobody() -> None:
    with TurnLimit(7, JobTimeoutException):
        pass
    signal.raise_signal(signal.SIGALRM)
