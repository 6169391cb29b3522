"""Where pods are created and which are deleted, so that every node has the pods it should have. The numbers of cases
are explained in deviations.md."""

import pytest

from oarlock.controllers.daemonset.decide import decide
from oarlock.controllers.scheduling.model import NodeRequirement, NodeTerm, Placement
from tests.controllers.builders import NOW_MS, S
from tests.controllers.daemonset.daemon_builders import (
    NEW,
    created,
    deleted,
    dpod,
    ds,
    laid,
    names_of,
    nodes,
    numbered,
    slot,
    snap,
    surging,
    unassigned,
)

ONE_TO_FIVE = numbered(5)
RED = Placement(node_selector={"color": "red"})
COLORED = numbered(4) | nodes("n5", "n6", "n7", labels={"color": "red"})


@pytest.mark.parametrize(
    ("known", "letters", "owner", "create_on", "delete"),
    [
        pytest.param(ONE_TO_FIVE, {}, ds(), "n1 n2 n3 n4 n5", "", id="26.1.13 five plain nodes"),
        pytest.param({}, {}, ds(), "", "", id="26.1.15 no nodes"),
        pytest.param(numbered(1), {}, ds(), "n1", "", id="26.1.15 one node"),
        pytest.param(numbered(2), {"n1": "R", "n2": "p"}, ds(), "", "", id="one on each: nothing"),
        pytest.param(numbered(2), {"n1": "x"}, ds(), "n1 n2", "", id="26.1.21 a foreign pod with the same host ports"),
        pytest.param(numbered(2), {"n1": "xR"}, ds(), "n2", "", id="26.1.21 beside one of ours"),
        pytest.param(
            ONE_TO_FIVE,
            {"n2": "R", "n3": "RR", "n4": "RRRRR", "n5": "xx"},
            ds(),
            "n1 n5",
            "n3/1 n4/1 n4/2 n4/3 n4/4",
            id="26.1.24 nodes with 0, 1, 2, 5 pods and with others' ones",
        ),
        pytest.param(COLORED, {}, ds(placement=RED), "n5 n6 n7", "", id="26.1.25 only the labelled nodes"),
        pytest.param(
            numbered(5) | nodes(*"abcde", labels={"color": "red"}),
            {"n1": "R", "n2": "RR", "n3": "R", "n4": "x"},
            ds(placement=RED),
            "a b c d e",
            "n1/0 n2/0 n2/1 n3/0",
            id="26.1.26 pods on nodes that are not selected",
        ),
        pytest.param(
            numbered(5) | nodes(*"abcde", labels={"color": "red"}),
            {"n1": "R", "n2": "RRR", "n3": "R", "n4": "x", "a": "R", "b": "RRRRRRRRRRRRRRRR", "c": "x"},
            ds(placement=RED),
            "c d e",
            "n1/0 n2/0 n2/1 n2/2 n3/0 " + " ".join(f"b/{k}" for k in range(1, 16)),
            id="26.1.27 pods on both kinds of nodes: 3 creates, 20 deletes",
        ),
        pytest.param(
            COLORED, {}, ds(placement=Placement(node_selector={"color": "blue"})), "", "", id="26.1.28 no such node"
        ),
        pytest.param(COLORED, {}, ds(placement=Placement("n1")), "n1", "", id="26.1.28 one node by name"),
        pytest.param(COLORED, {}, ds(placement=Placement("n9")), "", "", id="26.1.28 no node of that name"),
        pytest.param(
            COLORED, {}, ds(placement=Placement("n6", {"color": "red"})), "n6", "", id="26.1.28 name and selector agree"
        ),
        pytest.param(
            COLORED,
            {},
            ds(placement=Placement("n1", {"color": "red"})),
            "",
            "",
            id="26.1.28 name and selector disagree",
        ),
        pytest.param(
            COLORED,
            {},
            ds(placement=Placement(terms=(NodeTerm((NodeRequirement("color", "In", ("red",)),)),))),
            "n5 n6 n7",
            "",
            id="26.1.29 required affinity",
        ),
        pytest.param(numbered(1), {"n1": "t"}, ds(), "", "", id="26.1.34 a terminating pod: no create, no delete"),
        pytest.param(numbered(1), {"n1": "tR"}, ds(), "", "", id="26.1.34 nor beside a running one"),
        pytest.param(numbered(1), {"n1": "f"}, ds(), "n1", "", id="26.4.3 one that has ended hangs: replaced"),
        pytest.param(nodes(), {"n1": "R"}, ds(), "", "", id="26.1.41 a bound pod of a missing node is left alone"),
        pytest.param(
            nodes("n1", labels={}), {"n1": "R"}, ds(placement=RED), "", "n1/0", id="26.1.42 and none is created there"
        ),
        pytest.param(
            ONE_TO_FIVE,
            {"n2": "R", "n3": "RR", "n4": "RRRRR", "n5": "xx"},
            surging(),
            "n1 n5",
            "n3/1 n4/1 n4/2 n4/3 n4/4",
            id="26.1.43 the mix of 24 with surge",
        ),
        pytest.param(numbered(1), {"n1": "t"}, surging(), "n1", "", id="surge: created beside one on its way out"),
        pytest.param(numbered(1), {"n1": "tt"}, surging(), "", "", id="surge: no third"),
        pytest.param(
            numbered(1), {"n1": "RROO"}, surging(), "", "n1/1 n1/2 n1/3", id="surge: new is available, old go"
        ),
        pytest.param(numbered(1), {"n1": "OO"}, surging(), "", "n1/1", id="surge: the older of two old ones stays"),
        pytest.param(numbered(1), {"n1": "oO"}, surging(), "", "n1/0", id="surge: of two old ones the one that serves"),
        pytest.param(numbered(1), {"n1": "op"}, surging(), "", "n1/0", id="surge: an old one of no use goes"),
        pytest.param(
            numbered(5), {"n2": "On", "n4": "OO"}, surging(), "n1 n3 n5", "n4/1", id="26.1.44 ready old pods are kept"
        ),
        pytest.param(
            numbered(5), {"n2": "on", "n4": "OO"}, surging(), "n1 n3 n5", "n2/0 n4/1", id="26.1.46 unready ones are not"
        ),
        pytest.param(
            numbered(5),
            {"n2": "Oa", "n4": "OO"},
            surging(min_ready_seconds=15),
            "n1 n3 n5",
            "n4/1",
            id="26.1.47 ready for 10 of 15 s: the old one is kept",
        ),
        pytest.param(
            numbered(5),
            {"n2": "Ob", "n4": "OO"},
            surging(min_ready_seconds=15),
            "n1 n3 n5",
            "n2/0 n4/1",
            id="26.1.47 ready for 20 of 15 s: it goes",
        ),
    ],
)
def test_presence(known, letters, owner, create_on, delete):
    """Where pods are created, and which are deleted."""
    plan = decide(snap(known, laid(letters), owner), NOW_MS)
    assert created(plan) == create_on.split()
    assert deleted(plan) == names_of(delete)
    assert plan.error == ""


def test_the_oldest_assigned_pod_is_kept():
    """Of several on a node: assigned before unassigned, then the oldest, whatever their names."""
    pods = (unassigned("n1", 0, created_ms=1), dpod("n1", 1, created_ms=3), dpod("n1", 2, created_ms=2))
    plan = decide(snap(numbered(1), pods), NOW_MS)
    assert deleted(plan) == names_of("n1/0 n1/1")


@pytest.mark.parametrize("owner", [ds(), surging()], ids=["without surge", "with surge"])
def test_pods_of_nodes_that_are_gone(owner):
    """26.1.41: those not assigned yet are deleted, unless they are on their way out; bound ones are for others."""
    pods = (unassigned("gone"), unassigned("lost", deleting_ms=NOW_MS), dpod("away"), dpod("n1"))
    plan = decide(snap(nodes("n1"), pods, owner), NOW_MS)
    assert (created(plan), deleted(plan)) == ([], names_of("gone/0"))


def test_creates_carry_the_revision_and_stay_the_same():
    """Names and order depend on nothing but what is known; the k-th name waits for the (k-1)-th."""
    plan = decide(snap(numbered(3)), NOW_MS)
    assert plan.create == tuple(slot(node) for node in ("n1", "n2", "n3"))
    assert plan.nodes == {slot(node): node for node in ("n1", "n2", "n3")}
    assert plan.revision == NEW
    assert decide(snap(numbered(3)), NOW_MS + S) == plan


def test_burst():
    """250 creates and 250 deletes, both in one turn, and what else there is in later ones."""
    known = numbered(600)
    crowded = list(known)[300:]
    plan = decide(snap(known, laid(dict.fromkeys(crowded, "RR"))), NOW_MS)
    assert list(plan.nodes.values()) == list(known)[:250]
    assert [name for name, _ in plan.delete] == [slot(node, 1) for node in crowded[:250]]


def test_a_burst_of_failed_pods():
    """Events and back-offs are only of those that go."""
    plan = decide(snap(numbered(300), laid(dict.fromkeys(numbered(300), "F"))), NOW_MS)
    assert len(plan.delete) == len(plan.events) == len(plan.back_offs) == 250


def test_limited_creation_is_counted():
    """26.1.16, the decision: 100 are missing and, once 10 were let in, 90; the status tells of both."""
    known = numbered(100)
    first = decide(snap(known), NOW_MS)
    there = [dpod(first.nodes[name], ready=False) for name in first.create[:10]]
    second = decide(snap(known, there), NOW_MS)
    assert (len(first.create), len(second.create)) == (100, 90)
    assert (second.counts.desired, second.counts.current, second.counts.updated) == (100, 10, 10)
