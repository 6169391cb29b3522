"""What a supervisor reports of its workers, and when it asks."""

from __future__ import annotations

import pytest

from oarlock.broker.budget import BudgetLimits, Lent, Report, Share
from oarlock.broker.values.errors import BrokerFull, EpochOver
from oarlock.workers.budget.lending import Lending
from oarlock.workers.counters.table import Row, own_row
from oarlock.workers.process.settings import Settings
from tests.manual_clock import ManualClock

LANE = "replicaset"


class Lender:
    """Notes each call and lends 7/s to whoever reports."""

    def __init__(self) -> None:
        self.calls: list[list[Report]] = []
        self.refusal: Exception | None = None
        self.wait_ms = 0

    def budget(self, limits: BudgetLimits, reports: list[Report], *, lease_ms: int) -> Lent:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append(reports)
        return Lent(100, self.wait_ms, [Share(each.holder, 1_000, 3, {LANE: 6_000}) for each in reports])


class Desk:
    def __init__(self, **settings: float) -> None:
        self.clock, self.lender, self.row = ManualClock(), Lender(), own_row()
        self.cells = self.row.layout.budget
        self.settings = Settings(**{"fleet_api_qps": 100.0, **settings})  # type: ignore[arg-type]
        self.lending = Lending(self.lender, self.settings, self.clock)  # type: ignore[arg-type]

    def run(self, **rows: Row) -> Report | None:
        """Returns the report of the call, if there was one."""
        before = len(self.lender.calls)
        self.lending.run_due(rows or {"w": self.row})
        return self.lender.calls[-1][0] if len(self.lender.calls) > before else None

    def later(self, ms: int = 1_000) -> Report:
        self.clock.advance(ms)
        report = self.run()
        assert report is not None
        return report


def test_without_a_budget_nobody_is_asked() -> None:
    desk = Desk(fleet_api_qps=0.0)
    assert desk.run() is None
    assert desk.lending.next_ms > 1 << 60


def test_twice_a_second_and_at_once_for_a_new_worker_or_a_gone_one() -> None:
    desk = Desk()
    assert desk.run() is not None
    assert desk.run() is None
    desk.clock.advance(499)
    assert desk.run() is None
    desk.clock.advance(1)
    assert desk.run() is not None
    assert desk.run(w=desk.row, other=own_row()) is not None
    assert desk.run(w=desk.row) is not None
    assert desk.run(w=desk.row) is None


def test_shares_count_for_a_lease_from_when_they_were_asked_for() -> None:
    desk = Desk()
    desk.lender.wait_ms = 400
    desk.run()
    ints, cells = desk.row.ints, desk.cells
    assert ints[cells.until_ms] == desk.clock.mono_ms() + desk.settings.lease_ms
    assert ints[cells.wait_until_ms] == desk.clock.mono_ms() + 400
    assert (ints[cells.lanes[LANE].rate], ints[cells.spare], ints[cells.flights]) == (6_000, 1_000, 3)
    assert ints[cells.lanes["daemonset"].rate] == 0


def test_a_lane_that_waits_wants_all_and_one_that_had_enough_a_little_more() -> None:
    desk = Desk()
    lane, ints = desk.cells.lanes[LANE], desk.row.ints
    desk.run()
    ints[lane.taken] += 20
    assert desk.later().wants == {LANE: 22_000}
    ints[lane.taken] += 20
    ints[lane.waited] += 1
    assert desk.later().wants == {LANE: 100_000}
    ints[lane.taken] += 1
    assert desk.later().wants == {LANE: 50_000}, "it may go on"
    assert desk.later().wants == {}
    ints[lane.waiting] = 1
    assert desk.later().wants == {LANE: 100_000}


def test_what_the_worker_was_told_is_passed_on() -> None:
    desk = Desk()
    ints, cells = desk.row.ints, desk.cells
    ints[cells.refused] = 5
    assert desk.run() == Report("w"), "429s of the position's last worker are old"
    ints[cells.refused], ints[cells.told_until_ms] = 7, desk.clock.mono_ms() + 3_000
    ints[cells.slow], ints[cells.judged_ms] = 1, desk.clock.mono_ms()
    ints[cells.under_way], ints[cells.wanted] = 4, 9
    assert desk.later() == Report("w", 2, 2_000, True, 4, 9)
    ints[cells.under_way] = ints[cells.wanted] = 0
    assert desk.later(3_000) == Report("w"), "a judgement grows old"


def test_a_new_worker_has_no_share_of_the_last_one_in_its_position() -> None:
    desk = Desk()
    desk.run()
    desk.lender.refusal = BrokerFull("full")
    desk.run(next=desk.row)
    assert desk.row.ints[desk.cells.until_ms] == 0


def test_a_refusal_is_told_once_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    desk.run()
    until_ms, desk.lender.refusal = desk.row.ints[desk.cells.until_ms], BrokerFull("full")
    for _ in range(3):
        desk.clock.advance(1_000)
        assert desk.run() is None
    assert desk.row.ints[desk.cells.until_ms] == until_ms
    assert caplog.text.count("budget_refused") == 1
    desk.lender.refusal = None
    assert desk.later() is not None


def test_the_end_of_the_epoch_is_the_supervisor_s_to_hear() -> None:
    desk = Desk()
    desk.lender.refusal = EpochOver("over")
    with pytest.raises(EpochOver):
        desk.run()
