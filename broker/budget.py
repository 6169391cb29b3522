"""The API budget of a fleet: what workers ask for, and the shares of it that they are lent.

Rates are in thousandths of a request a second, so that every sum is of whole numbers and both twins agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

EVENTS = "events"
"""The lane of events about objects. All others are named after their queue."""

CAUSES = ("429", "slow")
"""Why the rate may have been cut."""
NO_LANES: Mapping[str, int] = MappingProxyType({})


class BudgetLimits(NamedTuple):
    """What a fleet may ask of the API. ``most``, ``least``: between them the rate adapts. ``flights``: requests under
    way at once; 0: no limit.
    """

    most: int
    least: int
    flights: int = 0


class Report(NamedTuple):
    """What a worker tells since its last report. ``refused``: 429s. ``wait_ms``: for how long it was told to wait, from
    now. ``slow``: whether answers take far longer than they used to; None: too few to say. ``under_way``: requests now;
    ``flights``: how many it would have under way. ``wants``: lane -> rate; an idle lane is left out.
    """

    holder: str
    refused: int = 0
    wait_ms: int = 0
    slow: bool | None = None
    under_way: int = 0
    flights: int = 0
    wants: Mapping[str, int] = NO_LANES

    @property
    def words(self) -> str:
        """As the script takes it."""
        slow = "-" if self.slow is None else str(int(self.slow))
        lanes = (f"{lane}={rate}" for lane, rate in sorted(self.wants.items()))
        numbers = map(str, (self.refused, self.wait_ms, slow, self.under_way, self.flights))
        return " ".join((self.holder, *numbers, *lanes))


class Share(NamedTuple):
    """What a worker may use until its lease ends. ``rates``: lane -> rate. ``spare``: a rate that any lane may use."""

    holder: str
    spare: int
    flights: int
    rates: Mapping[str, int]


class Lent(NamedTuple):
    """``rate``: of the whole fleet now. ``wait_ms``: the API server asked for so long without a request."""

    rate: int
    wait_ms: int
    shares: list[Share]


@dataclass(slots=True)
class Loan:
    """What is kept of a worker until ``until_ms``. ``wanted``: requests it would have under way; ``flights``: may."""

    until_ms: int
    slow: str = "-"
    under_way: int = 0
    wanted: int = 0
    flights: int = 0
    spare: int = 0
    lanes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Lane -> what was wanted, and what was lent."""

    @property
    def text(self) -> str:
        """As Redis stores it."""
        lanes = (f"{lane}={want}:{lent}" for lane, (want, lent) in sorted(self.lanes.items()))
        numbers = (self.until_ms, self.slow, self.under_way, self.wanted, self.flights, self.spare)
        return " ".join((*map(str, numbers), *lanes))

    @classmethod
    def parse(cls, text: str) -> Loan:
        """From its text. Raises ValueError."""
        until_ms, slow, under_way, wanted, flights, spare, *words = text.split(" ")
        lanes = {}
        for word in words:
            lane, _, rates = word.rpartition("=")
            want, _, lent = rates.partition(":")
            lanes[lane] = int(want), int(lent)
        return cls(int(until_ms), slow, int(under_way), int(wanted), int(flights), int(spare), lanes)

    @property
    def rate(self) -> int:
        """All that is lent."""
        return self.spare + sum(lent for _, lent in self.lanes.values())


class LaneView(NamedTuple):
    """Of a lane, over all workers: requests a second that are wanted, as far as is known, and lent."""

    wanted: float
    lent: float


@dataclass(frozen=True, slots=True)
class BudgetView:
    """The budget for people. Rates in requests a second. ``cut_ms``: since it was cut last, None if it never was.

    ``wait_ms``: for so long the API server asked for no request. ``in_flight_most``: 0 for no limit.
    """

    qps: float
    qps_most: float
    cut_ms: int | None
    cut_why: str
    wait_ms: int
    in_flight: int
    in_flight_most: int
    workers: int
    lanes: Mapping[str, LaneView]


def view_of(budget: Mapping[str, str], shares: Mapping[str, str], now_ms: int) -> BudgetView | None:
    """From the keys "budget" and "shares"; None where there is no budget. What cannot be read is left out."""

    def number(name: str) -> int:
        text = budget.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else 0

    if not number("rate"):
        return None
    loans, lanes = [], dict[str, LaneView]()
    for text in shares.values():
        try:
            loan = Loan.parse(text)
        except ValueError:
            continue
        if loan.until_ms > now_ms:
            loans.append(loan)
    for loan in loans:
        for lane, (want, lent) in loan.lanes.items():
            known = lanes.get(lane, LaneView(0.0, 0.0))
            lanes[lane] = LaneView(known.wanted + want / 1_000, known.lent + lent / 1_000)
    cut_at_ms = number("cut_ms")
    return BudgetView(
        number("rate") / 1_000,
        number("most") / 1_000,
        max(0, now_ms - cut_at_ms) if cut_at_ms else None,
        budget.get("why", "") if budget.get("why") in CAUSES else "",
        max(0, number("wait_until_ms") - now_ms),
        sum(loan.under_way for loan in loans),
        number("flights"),
        len(loans),
        dict(sorted(lanes.items())),
    )
