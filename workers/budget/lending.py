"""What a supervisor does about the API budget: twice a second it tells Redis what its workers want, and hands them
their new shares. A turn never asks Redis for a token.

A call that is refused changes nothing: the shares count until their lease ends (``buckets``). So a Redis that is full,
or silent for a moment, holds up neither renewals nor turns.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from redis.exceptions import RedisError

from oarlock.broker.budget import BudgetLimits, Report, Share
from oarlock.broker.protocol import Broker
from oarlock.broker.values.errors import BrokerFull, BrokerUnreachable
from oarlock.workers.counters.table import Row
from oarlock.workers.process.clock import Clock
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings

log = logging.getLogger("oarlock.fleet")

EVERY_MS = 500
NEVER_MS = 1 << 62
OPINION_MS = 3_000
"""A worker's judgement of how slow answers are counts for so long."""
HEADROOM = 1.1
"""A lane that had all it wanted may want so much more next time."""


class _Told:
    """What a worker had taken when it was last reported on, and what it wanted then."""

    def __init__(self, row: Row, now_ms: int) -> None:
        cells, ints = row.layout.budget, row.ints
        self.at_ms, self.refused = now_ms, ints[cells.refused]
        self.taken = {lane: ints[each.taken] for lane, each in cells.lanes.items()}
        self.waited = {lane: ints[each.waited] for lane, each in cells.lanes.items()}
        self.wants: dict[str, int] = {}


class Lending:
    """Of one supervisor, in one epoch. Without a budget it does nothing. May raise EpochOver."""

    def __init__(self, broker: Broker, settings: Settings, clock: Clock) -> None:
        self._broker, self._settings, self._clock = broker, settings, clock
        self._limits = settings.budget
        self._told: dict[str, _Told] = {}
        self._refused = False
        self.next_ms = NEVER_MS if self._limits is None else 0
        """When ``run_due`` has something to do again."""

    def run_due(self, rows: Mapping[str, Row]) -> None:
        """Report on the workers and hand them their shares, if it is time or one of them is new."""
        now_ms = self._clock.mono_ms()
        if self._limits is None or (now_ms < self.next_ms and rows.keys() == self._told.keys()):
            return
        self.next_ms = now_ms + EVERY_MS
        self._told = {holder: each for holder, each in self._told.items() if holder in rows}
        reports = [self._report(holder, row, now_ms, self._limits) for holder, row in rows.items()]
        if not reports:
            return
        try:
            lent = self._broker.budget(self._limits, reports, lease_ms=self._settings.lease_ms)
        except (BrokerUnreachable, BrokerFull, RedisError) as error:
            if not self._refused:
                log.warning(line("budget_refused", error=error))
            self._refused = True
            return
        self._refused = False
        for share in lent.shares:
            _hand_over(rows[share.holder], share, now_ms + self._settings.lease_ms, now_ms + lent.wait_ms)

    def _report(self, holder: str, row: Row, now_ms: int, limits: BudgetLimits) -> Report:
        cells, ints = row.layout.budget, row.ints
        told = self._told.get(holder)
        if told is None:
            told = self._told[holder] = _Told(row, now_ms)
            ints[cells.until_ms] = 0  # the last worker in this position had shares of its own
            ints[cells.wait_until_ms] = 0
        now = _Told(row, now_ms)
        over_ms = max(1, now_ms - told.at_ms)
        for lane, each in cells.lanes.items():
            if now.waited[lane] > told.waited[lane] or ints[each.waiting] > 0:
                now.wants[lane] = limits.most
                continue
            used = (now.taken[lane] - told.taken[lane]) * 1_000_000 // over_ms
            if used:
                now.wants[lane] = min(limits.most, max(round(used * HEADROOM), told.wants.get(lane, 0) // 2))
        self._told[holder] = now
        judged = now_ms - ints[cells.judged_ms] < OPINION_MS
        return Report(
            holder,
            max(0, now.refused - told.refused),
            max(0, ints[cells.told_until_ms] - now_ms),
            ints[cells.slow] == 1 if judged else None,
            max(0, ints[cells.under_way]),
            max(0, ints[cells.wanted]),
            now.wants,
        )


def _hand_over(row: Row, share: Share, until_ms: int, wait_until_ms: int) -> None:
    cells, ints = row.layout.budget, row.ints
    for lane, each in cells.lanes.items():
        ints[each.rate] = share.rates.get(lane, 0)
    ints[cells.spare], ints[cells.flights] = share.spare, share.flights
    ints[cells.wait_until_ms] = wait_until_ms
    ints[cells.until_ms] = until_ms  # last: until then nothing of it counts
