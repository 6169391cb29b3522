"""Bulk writes of several turns: let in first come, first served, and never more than one turn may have alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oarlock.workers.turn.engine.write_window import LEFT_OUT, WriteWindow
from oarlock.workers.turn.steps import Grant

MOST = 256


def all_of(wanted: int, behind: int) -> Grant:
    return Grant(wanted, 0)


def done(reply: Grant | Future[Grant]) -> bool:
    return reply.done() if isinstance(reply, Future) else True


def window(reserve: Callable[[int, int], Grant] = all_of, late: Callable[[Any], bool] = lambda turn: False) -> Any:
    """A WriteWindow in which anything stands for a turn."""
    return WriteWindow(MOST, reserve, late)


def test_what_fits_is_let_in_at_once() -> None:
    made = window()
    assert made.reserve("a", 200) == Grant(200, 0)
    assert made.reserve("b", 56) == Grant(56, 0)
    assert not done(made.reserve("c", 1))


def test_who_is_alone_is_let_in_however_much_it_wants() -> None:
    made = window()
    assert made.reserve("a", 500) == Grant(500, 0)
    later = made.reserve("b", 500)
    assert isinstance(later, Future)
    made.leave("a")
    assert later.result(0) == Grant(500, 0)


def test_a_small_one_does_not_overtake_a_large_one() -> None:
    made = window()
    made.reserve("a", 100)
    large, small = made.reserve("b", 200), made.reserve("c", 1)
    assert (done(large), done(small)) == (False, False)
    made.leave("a")
    assert (done(large), done(small)) == (True, True)


def test_one_that_ended_meanwhile_is_passed_over_and_takes_no_tokens() -> None:
    asked: list[int] = []

    def reserve(wanted: int, behind: int) -> Grant:
        asked.append(wanted)
        return Grant(wanted, 0)

    made = window(reserve)
    made.reserve("a", 256)
    gone, next_one = made.reserve("b", 256), made.reserve("c", 7)
    assert isinstance(gone, Future)
    gone.cancel()
    made.leave("b")
    assert not done(next_one), "a is still at it"
    made.leave("a")
    assert done(next_one)
    assert asked == [256, 7]


def test_what_the_rate_limit_did_not_grant_is_not_under_way() -> None:
    grants = iter([Grant(3, 50), Grant(0, 50), Grant(256, 0)])
    made = window(lambda wanted, behind: next(grants))
    assert made.reserve("a", 256) == Grant(3, 50)
    made.leave("a")
    assert made.reserve("b", 256) == Grant(0, 50)
    assert made.reserve("c", 256) == Grant(256, 0), "b has nothing under way"


def test_who_thinks_better_of_it_does_not_wait_for_itself() -> None:
    """Room for 200 creates that were not sent after all, and then deletes."""
    made = window()
    made.reserve("a", 200)
    assert made.reserve("a", 100) == Grant(100, 0)
    assert made.reserve("b", 156) == Grant(156, 0)


def test_one_that_has_used_up_its_time_ends_with_what_it_has() -> None:
    """Also one that waits, wherever it stands in the queue."""
    late: set[str] = set()
    made = window(late=late.__contains__)
    made.reserve("a", 200)
    made.reserve("b", 56)
    large, small = made.reserve("c", 256), made.reserve("d", 1)
    late |= {"d", "e"}
    assert made.reserve("e", 1) == LEFT_OUT
    made.leave("b")
    assert small.result(0) == LEFT_OUT
    assert not done(large)
    made.leave("a")
    assert large.result(0) == Grant(256, 0)


@settings(suppress_health_check=[HealthCheck.too_slow])  # of a busy machine it says nothing about the window
@given(st.lists(st.tuples(st.sampled_from(["reserve", "leave", "cancel"]), st.integers(0, 7), st.integers(1, 400))))
def test_never_too_many_and_nobody_is_forgotten(steps: list[tuple[str, int, int]]) -> None:
    """Beside a list of who has what: a turn that is alone may have any number, others together ``MOST``."""
    made = window()
    has: dict[int, int] = {}
    waits: dict[int, tuple[int, Future[Grant]]] = {}
    for verb, turn, wanted in steps:
        if verb == "reserve" and turn not in has and turn not in waits:
            reply = made.reserve(turn, wanted)
            if isinstance(reply, Future):
                waits[turn] = wanted, reply
            else:
                has[turn] = wanted
        elif verb == "leave" and turn in has:
            del has[turn]
            made.leave(turn)
        elif verb == "cancel" and turn in waits:
            waits.pop(turn)[1].cancel()
            made.leave(turn)
        for each, (asked, future) in list(waits.items()):
            if future.done():
                has[each] = asked
                del waits[each]
        assert len(has) <= 1 or sum(has.values()) <= MOST
        if waits:
            first, _ = next(iter(waits.values()))
            assert has
            assert sum(has.values()) + first > MOST, "the first in the queue has room"
