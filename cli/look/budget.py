"""The API budget of a fleet, in words: for `oarlock epoch` and `oarlock explain`."""

from __future__ import annotations

from typing import Any

from oarlock.broker.budget import BudgetView
from oarlock.cli.tables import span

CAUSES = {"429": "the API server answered 429", "slow": "most workers found its answers far slower than usual"}


def budget_line(budget: BudgetView) -> str:
    """How large it is now, and why it is not larger."""
    workers = "1 worker" if budget.workers == 1 else f"{budget.workers} workers"
    said = f"API budget: {budget.qps:g} of {budget.qps_most:g} requests/s for {workers}"
    if budget.in_flight_most:
        said += f", {budget.in_flight} of {budget.in_flight_most} under way"
    if budget.cut_why and budget.cut_ms is not None and budget.qps < budget.qps_most:
        said += f"; cut {span(budget.cut_ms)} ago: {CAUSES[budget.cut_why]}"
    if budget.wait_ms:
        said += f"; nothing is sent for {span(budget.wait_ms)}, as a 429 asked for"
    return said


def budget_facts(budget: BudgetView | None) -> dict[str, Any] | None:
    """For JSON."""
    if budget is None:
        return None
    lanes = {name: {"wanted": lane.wanted, "lent": lane.lent} for name, lane in budget.lanes.items()}
    return {
        "qps": budget.qps,
        "qps_most": budget.qps_most,
        "cut_ms": budget.cut_ms,
        "cut_why": budget.cut_why,
        "wait_ms": budget.wait_ms,
        "in_flight": budget.in_flight,
        "in_flight_most": budget.in_flight_most,
        "workers": budget.workers,
        "lanes": lanes,
    }


def wait_for_budget(budget: BudgetView | None, queue: str) -> str:
    """Why a turn of this queue that is under way may be waiting; "" if it does not wait for the budget."""
    if budget is None:
        return ""
    if budget.wait_ms:
        return f"The whole fleet sends nothing for {span(budget.wait_ms)}, as a 429 of the API server asked for."
    lane = budget.lanes.get(queue)
    if lane is None or lane.wanted <= lane.lent:
        return ""
    return (
        f"Turns of {queue} wait for the API budget: they have {lane.lent:g} of the fleet's {budget.qps:g} requests/s"
        " and want more (`oarlock epoch`; docs/api-budget.md)."
    )
