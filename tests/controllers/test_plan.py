"""Writes without an answer, and those that a plan adds to them."""

from oarlock.controllers.plan import Plan, Unanswered


def test_what_a_plan_created_counts_as_unanswered():
    """Its names are taken, each for its node, and nobody sends them again in this turn."""
    before = Unanswered(
        creates=frozenset({"a"}),
        deletes=frozenset({"uid"}),
        quiet=frozenset({"uid"}),
        passed=frozenset({"p"}),
        nodes={"a": "n1"},
    )
    after = before.with_created(Plan(create=("b", "c"), nodes={"b": "n2", "c": "n3"}))
    assert after == Unanswered(
        creates=frozenset({"a", "b", "c"}),
        deletes=frozenset({"uid"}),
        quiet=frozenset({"uid", "b", "c"}),
        passed=frozenset({"p"}),
        nodes={"a": "n1", "b": "n2", "c": "n3"},
    )
