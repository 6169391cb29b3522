"""Lends the API budget, in memory: ``scripts/budget.lua`` in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oarlock.broker.budget import EVENTS, BudgetLimits, Lent, Loan, Report, Share

if TYPE_CHECKING:
    from oarlock.broker.memory.state import EpochState

WAIT_MAX_MS = 60_000
IDLE_PERCENT, EVENTS_PERCENT = 4, 10
RAISE_PERCENT, RAISE_EVERY_MS = 5, 1_000
CUTS = {"429": (70, 1_000), "slow": (85, 2_000)}
"""Why the rate is cut -> to how many percent, and how long after the last cut at least."""


@dataclass(slots=True)
class BudgetState:
    """``rate`` None: nothing was lent yet."""

    rate: int | None = None
    raised_ms: int = 0
    cut_ms: int = 0
    wait_until_ms: int = 0
    why: str = ""
    limits: BudgetLimits | None = None
    loans: dict[str, Loan] = field(default_factory=dict)


def fill(room: int, wants: Mapping[str, int]) -> dict[str, int]:
    """Max-min: nobody gets more than it wants, and whoever gets less gets as much as anybody."""
    shares, left = {}, len(wants)
    for want, name in sorted((want, name) for name, want in wants.items()):
        shares[name] = min(want, room // left)
        room, left = room - shares[name], left - 1
    return shares


def budget(state: EpochState, now: int, lease_ms: int, limits: BudgetLimits, reports: Sequence[Report]) -> Lent:
    """The shares of those that report and are registered."""
    b, reports = state.budget, [each for each in reports if each.holder in state.holders]
    for holder, loan in list(b.loans.items()):
        loan.until_ms = min(loan.until_ms, now + lease_ms)
        if loan.until_ms <= now or holder not in state.holders:
            del b.loans[holder]
    for each in reports:
        slow = "-" if each.slow is None else str(int(each.slow))
        loan = b.loans.setdefault(each.holder, Loan(0))
        loan.until_ms, loan.slow = now + lease_ms, slow
        loan.under_way, loan.wanted = each.under_way, each.flights
        loan.lanes = {lane: (want, 0) for lane, want in each.wants.items()}
        loan.spare = loan.flights = 0
    b.limits = limits
    rate = _adapt(b, now, limits, reports)
    targets = _targets(rate, b.loans)
    mine = [each.holder for each in reports]
    _lend(rate, b.loans, targets, mine)
    if limits.flights:
        _lend_flights(limits.flights, b.loans, mine)
    shares = [
        Share(holder, loan.spare, loan.flights, {lane: lent for lane, (_, lent) in loan.lanes.items()})
        for holder in mine
        for loan in (b.loans[holder],)
    ]
    return Lent(rate, max(0, b.wait_until_ms - now), shares)


def _adapt(b: BudgetState, now: int, limits: BudgetLimits, reports: Iterable[Report]) -> int:
    """Additive increase, multiplicative decrease. A clock that went back ends every pause."""
    rate = limits.most if b.rate is None else max(limits.least, min(b.rate, limits.most))
    refused = sum(each.refused for each in reports)
    wait_ms = max((min(each.wait_ms, WAIT_MAX_MS) for each in reports), default=0)
    b.wait_until_ms = max(min(b.wait_until_ms, now + WAIT_MAX_MS), now + wait_ms if wait_ms else 0)
    judged = [loan.slow for loan in b.loans.values() if loan.slow != "-"]
    why = "429" if refused else "slow" if 2 * judged.count("1") > len(judged) else ""
    since_cut_ms = now - b.cut_ms if now >= b.cut_ms else WAIT_MAX_MS
    since_raise_ms = now - b.raised_ms if now >= b.raised_ms else RAISE_EVERY_MS
    if why and since_cut_ms >= CUTS[why][1]:
        rate = max(limits.least, rate * CUTS[why][0] // 100)
        b.cut_ms, b.raised_ms, b.why = now, now, why
    elif b.rate is None:
        b.raised_ms = now
    elif not why and since_raise_ms >= RAISE_EVERY_MS and now >= b.wait_until_ms:
        steps = min(100 // RAISE_PERCENT, since_raise_ms // RAISE_EVERY_MS)
        rate = min(limits.most, rate + steps * (limits.most * RAISE_PERCENT // 100))
        b.raised_ms = now
    b.rate = rate
    return rate


def _targets(rate: int, loans: Mapping[str, Loan]) -> dict[str, tuple[int, dict[str, int]]]:
    """Holder -> its spare rate, and lane -> rate: among lanes first, then among the workers of a lane."""
    room = rate - rate * IDLE_PERCENT // 100
    by_lane: dict[str, dict[str, int]] = {}
    for holder, loan in loans.items():
        for lane, (want, _) in loan.lanes.items():
            by_lane.setdefault(lane, {})[holder] = want
    wants = {lane: sum(of.values()) for lane, of in by_lane.items()}
    if EVENTS in wants:
        wants[EVENTS] = min(wants[EVENTS], rate * EVENTS_PERCENT // 100)
    lanes: dict[str, dict[str, int]] = {holder: {} for holder in loans}
    given = 0
    for lane, share in fill(room, wants).items():
        for holder, own in fill(share, by_lane[lane]).items():
            lanes[holder][lane] = own
            given += own
    return {holder: ((rate - given) // len(loans), lanes[holder]) for holder in loans}


def _lend(
    rate: int, loans: Mapping[str, Loan], targets: Mapping[str, tuple[int, dict[str, int]]], mine: Iterable[str]
) -> None:
    """What others have been lent, they may still use. Only the rest can be lent."""
    mine = set(mine)
    free = max(0, rate - sum(loan.rate for holder, loan in loans.items() if holder not in mine))
    asked = sum(spare + sum(lanes.values()) for holder, (spare, lanes) in targets.items() if holder in mine)

    def scaled(amount: int) -> int:
        return amount if asked <= free else amount * free // asked

    for holder in mine:
        spare, lanes = targets[holder]
        loans[holder].spare = scaled(spare)
        loans[holder].lanes = {lane: (want, scaled(lanes[lane])) for lane, (want, _) in loans[holder].lanes.items()}


def _lend_flights(most: int, loans: Mapping[str, Loan], mine: Sequence[str]) -> None:
    """Requests under way: each worker that reports gets one at least, so that none stands still."""
    targets = fill(most, {holder: max(1, loan.wanted) for holder, loan in loans.items()})
    extra = max(0, most - sum(targets.values())) // len(loans) if loans else 0
    taken = sum(max(loan.flights, loan.under_way) for holder, loan in loans.items() if holder not in mine)
    lent = fill(max(0, most - taken), {holder: targets[holder] + extra for holder in mine})
    for holder in mine:
        loans[holder].flights = max(1, lent[holder])
