"""The API budget in the words of `oarlock epoch` and `oarlock explain`."""

from __future__ import annotations

from oarlock.broker.budget import Loan, view_of
from oarlock.cli.look.budget import budget_facts, budget_line, wait_for_budget

QUEUE, AT_MS = "replicaset", 1_800_000_000_000
BUDGET = {"rate": "70000", "most": "100000", "flights": "8", "cut_ms": str(AT_MS), "why": "429"}
WAITING = {**BUDGET, "wait_until_ms": str(AT_MS + 1_500)}
SHARES = {
    "w1": Loan(AT_MS + 5_000, "-", 3, 9, 4, 2_800, {QUEUE: (90_000, 62_200), "daemonset": (5_000, 5_000)}).text,
    "dead": Loan(AT_MS, "0", 5, 9, 4, 2_800, {QUEUE: (90_000, 50_000)}).text,
}


def test_epoch_says_how_large_it_is_and_why() -> None:
    found = view_of(WAITING, SHARES, AT_MS + 500)
    assert found is not None
    assert budget_line(found) == (
        "API budget: 70 of 100 requests/s for 1 worker, 3 of 8 under way; cut 500ms ago: the API server answered 429;"
        " nothing is sent for 1.0s, as a 429 asked for"
    )
    assert budget_facts(found) == {
        "qps": 70.0,
        "qps_most": 100.0,
        "cut_ms": 500,
        "cut_why": "429",
        "wait_ms": 1_000,
        "in_flight": 3,
        "in_flight_most": 8,
        "workers": 1,
        "lanes": {"daemonset": {"wanted": 5.0, "lent": 5.0}, QUEUE: {"wanted": 90.0, "lent": 62.2}},
    }


def test_explain_says_what_a_turn_waits_for() -> None:
    waiting, later = view_of(WAITING, SHARES, AT_MS + 500), view_of(BUDGET, SHARES, AT_MS + 1_500)
    assert wait_for_budget(waiting, QUEUE) == (
        "The whole fleet sends nothing for 1.0s, as a 429 of the API server asked for."
    )
    assert wait_for_budget(later, QUEUE) == (
        "Turns of replicaset wait for the API budget: they have 62.2 of the fleet's 70 requests/s and want more"
        " (`oarlock epoch`; docs/api-budget.md)."
    )
    assert wait_for_budget(later, "daemonset") == ""


def test_without_a_budget_nothing_is_said() -> None:
    assert budget_facts(None) is None
    assert wait_for_budget(None, QUEUE) == ""


def test_what_cannot_be_read_is_left_out() -> None:
    assert view_of({"rate": "fast"}, {}, 0) is None
    found = view_of({"rate": "5000", "most": "9000", "why": "\x1b[2J", "cut_ms": "-"}, {"w": "x", "v": "9 - 1"}, 5)
    assert found is not None
    assert (found.qps, found.cut_why, found.workers, found.lanes) == (5.0, "", 0, {})
