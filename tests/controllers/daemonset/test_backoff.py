"""How long failed pods are left alone."""

import pytest

from oarlock.controllers.daemonset.backoff import (
    DELAY_MAX_MS,
    FIRST_DELAY_MS,
    FORGOTTEN_AFTER_MS,
    BackOff,
    next_entry,
    waiting_ms,
)
from tests.controllers.builders import NOW_MS, H


def test_delays_double_up_to_a_quarter_of_an_hour():
    """The delays after one failure upon another, in seconds."""
    entry, delays = None, []
    for _ in range(13):
        entry = next_entry(entry, 1, NOW_MS)
        delays.append(entry.delay_ms // 1000)
    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]


@pytest.mark.parametrize(
    ("passed_ms", "left_ms"),
    [
        pytest.param(0, 4000, id="just deleted"),
        pytest.param(3999, 1, id="all but over"),
        pytest.param(4000, 0, id="26.1.33 exactly at the boundary it is over"),
        pytest.param(H, 0, id="long over"),
        pytest.param(-3999, 7999, id="another machine's clock is a little ahead"),
        pytest.param(-4000, 0, id="a time that cannot be"),
        pytest.param(-H, 0, id="the clock was set back"),
    ],
)
def test_what_is_left_of_a_delay(passed_ms, left_ms):
    """Never more than twice the delay, whatever the clocks say."""
    assert waiting_ms(BackOff(1, 4000, NOW_MS - passed_ms), 1, NOW_MS) == left_ms


def test_nothing_known():
    """The first failure costs nothing."""
    assert waiting_ms(None, 1, NOW_MS) == 0
    assert next_entry(None, 1, NOW_MS) == BackOff(1, FIRST_DELAY_MS, NOW_MS)


def test_another_generation_starts_afresh():
    """The template may have been mended."""
    entry = BackOff(1, 8000, NOW_MS)
    assert waiting_ms(entry, 2, NOW_MS) == 0
    assert next_entry(entry, 2, NOW_MS) == BackOff(2, FIRST_DELAY_MS, NOW_MS)


@pytest.mark.parametrize(
    ("passed_ms", "delay_ms"),
    [(FORGOTTEN_AFTER_MS, DELAY_MAX_MS), (FORGOTTEN_AFTER_MS + 1, FIRST_DELAY_MS)],
    ids=["half an hour: still known", "more: forgotten"],
)
def test_an_old_entry_is_forgotten(passed_ms, delay_ms):
    """After twice the longest delay without a failure."""
    assert next_entry(BackOff(1, DELAY_MAX_MS, NOW_MS - passed_ms), 1, NOW_MS).delay_ms == delay_ms


@pytest.mark.parametrize("entry", [BackOff(1, 1000, NOW_MS), BackOff(0, DELAY_MAX_MS, 0)])
def test_text(entry):
    """What is written to the record is what is read."""
    assert BackOff.parse(entry.text) == entry


@pytest.mark.parametrize("text", ["", "generation=1", "generation=x delay_ms=1 at_ms=1", "1000"])
def test_text_that_is_none(text):
    """It counts as absent, so that the next one replaces it."""
    assert BackOff.parse(text) is None
