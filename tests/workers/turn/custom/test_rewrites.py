"""A status that is written again and again though nothing else has changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from oarlock.broker.expectations import REWRITTEN, Expectations, Rewritten
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.controllers.objects.whole import Whole
from oarlock.workers.turn.custom.rewrites import FREE, LONGEST_MS, Rewrites
from oarlock.workers.turn.turn_outcome import TurnOutcome

NOW_MS = 1_800_000_000_000


class Key:
    """Turns over one object, each by whichever worker: only what is in Redis goes from one to the next."""

    def __init__(self) -> None:
        self.noted, self.now_ms, self.rv = "", NOW_MS, 5
        self.outcome: TurnOutcome
        self.told = list[str]()

    def turn(self, *, children: tuple[str, ...] = ("7",), **parts: Any) -> Rewrites:
        body = {"metadata": {"name": "blog"}, "spec": {}, "status": {"at": self.rv}, **parts}
        own = Whole("shop", "blog", "u-1", body=msgspec.json.encode(body))
        expectations = Expectations.parse([REWRITTEN, self.noted] if self.noted else [])
        owner = Cached(str(self.rv), "u-1", b"")
        claim = Claim("site", "shop/blog", "nonce", owner, [], expectations, "", False, 0, now_ms=self.now_ms)
        self.outcome = TurnOutcome(claim)
        return Rewrites(claim, own, children)

    def write(self, *, due_ms: int | None = None, every_ms: int | None = None, others: int = 0, **turn: Any) -> int:
        """Write the status. Returns how long the next turn waits. ``others``: writes by others before it."""
        self.rv += others
        rewrites = self.turn(**turn)
        if due_ms is not None:
            self.outcome.due_in(due_ms)
        rewrites.one(str(self.rv), str(self.rv + 1), self.outcome, every_ms)
        self.rv += 1
        self.told += [each.reason for each in self.outcome.events]
        (change,) = self.outcome.changes
        self.noted = change.value
        return self.held_ms(**turn)

    def held_ms(self, **turn: Any) -> int:
        """How long the next turn waits."""
        held = self.turn(**turn).hold(self.outcome)
        assert held == (self.outcome.due_ms is not None)
        return self.outcome.due_ms or 0

    @property
    def times(self) -> int:
        return Rewritten.parse(self.noted).times


def looped() -> Key:
    """As often as is free."""
    key = Key()
    assert [key.write() for _ in range(FREE)] == [0] * FREE
    return key


def test_the_first_writes_are_free_and_then_the_waits_double() -> None:
    key, waits_s = looped(), []
    for _ in range(11):
        waits_s.append(key.write() // 1000)
        key.now_ms += waits_s[-1] * 1000
    assert waits_s == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_it_is_told_once() -> None:
    key = looped()
    assert key.told == []
    for _ in range(3):
        key.write()
    assert key.told == ["StatusRewritten"]


NEWS: dict[str, dict[str, Any]] = {
    "the spec has changed": {"spec": {"size": 2}},
    "a label has changed": {"metadata": {"name": "blog", "labels": {"a": "b"}}},
    "a child has changed": {"children": ("8",)},
    "a child is gone": {"children": ()},
    "somebody else wrote the status": {"others": 1},
}


@pytest.mark.parametrize("case", NEWS)
def test_what_is_new_begins_the_count_anew(case: str) -> None:
    key = looped()
    assert (key.write(**NEWS[case]), key.times) == (0, 1)


@pytest.mark.parametrize("case", NEWS)
def test_what_is_new_does_not_wait(case: str) -> None:
    key, news = looped(), dict(NEWS[case])
    assert key.write() == 1000
    key.rv += news.pop("others", 0)
    assert key.held_ms(**news) == 0


def test_a_turn_that_is_due_sooner_does_not_wait_for_longer() -> None:
    assert [key.write(due_ms=1500) for key in [looped()] for _ in range(3)] == [1000, 1500, 1500]
    assert [key.write(every_ms=1500) for key in [looped()] for _ in range(3)] == [1000, 1500, 1500]


def test_the_wait_is_over_when_its_time_has_come() -> None:
    key = looped()
    key.write()
    key.now_ms += 400
    assert key.held_ms() == 600
    key.now_ms += 600
    assert key.held_ms() == 0


def test_a_time_that_is_none_of_ours_holds_nobody() -> None:
    key = looped()
    key.write()
    key.noted = Rewritten.parse(key.noted)._replace(until_ms=NOW_MS + LONGEST_MS + 1).text
    assert key.held_ms() == 0


@pytest.mark.parametrize("noted", ["", "times=x rv= inputs until_ms=-1", "pending"])
def test_what_cannot_be_read_counts_as_nothing(noted: str) -> None:
    key = Key()
    key.noted = noted
    assert (key.write(), key.times) == (0, 1)


def test_a_status_that_is_as_wanted_ends_the_count() -> None:
    key = looped()
    key.turn().none(key.outcome)
    assert [(each.op, each.name) for each in key.outcome.changes] == [("drop", REWRITTEN)]
    key.noted = ""
    key.turn().none(key.outcome)
    assert key.outcome.changes == []


def test_a_write_of_which_the_server_kept_nothing_wakes_nobody_and_counts_as_none() -> None:
    key = Key()
    key.turn().one("5", "5", key.outcome, None)
    assert key.outcome.changes == []
