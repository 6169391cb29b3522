"""What comes after presence: a step of the update, and history. And names that may yet be borne."""

import pytest

from oarlock.controllers.daemonset.backoff import BackOff
from oarlock.controllers.daemonset.decide import decide
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.plan import Unanswered
from tests.controllers.builders import NOW_MS, S, with_fields
from tests.controllers.daemonset.daemon_builders import (
    AGENT,
    DS_OURS,
    OLD,
    OTHER_DS_UID,
    created,
    deleted,
    dpod,
    dpods,
    ds,
    laid,
    names_of,
    numbered,
    old_revision,
    slot,
    snap,
    surging,
)


@pytest.mark.parametrize(
    ("letters", "owner", "create_on", "delete"),
    [
        pytest.param("OOO", ds(), "", "n1/0", id="one at a time"),
        pytest.param("OOO", ds(strategy="OnDelete", max_unavailable=None), "", "", id="OnDelete: none"),
        pytest.param("OO", ds(), "n3", "", id="presence first: a node is empty"),
        pytest.param(("O", "O", "RR"), ds(), "", "n3/1", id="presence first: a node has two"),
        pytest.param("RRR", ds(), "", "", id="all are of the present revision"),
        pytest.param("OOO", surging(), "n1", "", id="surge: the new one beside the old one"),
        pytest.param("OOO", surging(max_surge="50%"), "n1 n2", "", id="surge: so many at a time"),
        pytest.param(
            ("OR", "O", "O"), surging(), "", "n1/0", id="surge: the old one goes when the new one is available"
        ),
        pytest.param(("On", "O", "O"), surging(), "", "", id="surge: and not before"),
        pytest.param(
            ("tO", "O", "O"), surging(), "n2", "", id="surge: past a node where two stand, one on its way out"
        ),
    ],
)
def test_a_step_of_the_update(letters, owner, create_on, delete):
    """Only when presence asks for nothing; pods on n1, n2, n3."""
    pods = laid({f"n{i}": each for i, each in enumerate(letters, 1)})
    plan = decide(snap(numbered(3), pods, owner), NOW_MS)
    assert (created(plan), deleted(plan)) == (create_on.split(), names_of(delete))
    assert (plan.events, plan.back_offs, plan.error) == ((), (), "")


def test_a_waiting_pod_does_not_hold_up_the_update():
    """Presence asks for nothing now; the failed pod is of the old template itself and goes with the update."""
    failed = with_fields(dpods("n1", "F")[0], labels=AGENT | {HASH_LABEL: OLD})
    back_offs = {"n1": BackOff(1, 60 * S, NOW_MS)}
    plan = decide(snap(numbered(1), [failed], back_offs=back_offs), NOW_MS)
    assert (deleted(plan), plan.again_ms, plan.events) == ([slot("n1")], 60 * S, ())


def test_an_update_that_cannot_be_made():
    """The reason is told, the status counts all the same, and history is left alone."""
    revisions = tuple(old_revision(i, f"h{i}") for i in range(12))
    plan = decide(snap(numbered(1), dpods("n1", "O"), ds(max_unavailable=None), old_revisions=revisions), NOW_MS)
    assert "maxUnavailable" in plan.error
    assert (plan.writes, plan.prune, plan.counts.desired) == (False, (), 1)


def test_a_burst_of_the_update():
    """No more than 250 at a time."""
    known = numbered(300)
    pods = laid(dict.fromkeys(known, "O"))
    assert len(decide(snap(known, pods, ds(max_unavailable="100%")), NOW_MS).delete) == 250
    assert len(decide(snap(known, pods, surging(max_surge="100%")), NOW_MS).create) == 250


@pytest.mark.parametrize(
    ("limit", "pods", "gone"),
    [
        pytest.param(3, (), "", id="no more than the limit"),
        pytest.param(2, (), "a", id="one more: the lowest number"),
        pytest.param(0, (), "a b c", id="none is to be kept"),
        pytest.param(1, "b", "a c", id="one is in use"),
        pytest.param(0, "abc", "", id="all are in use"),
    ],
)
def test_history(limit, pods, gone):
    """Old revisions beyond the limit that no pod was made from, not even one that has ended and is going."""
    ended = {"phase": "Failed", "deleting_ms": NOW_MS}
    made = [dpod(f"n{i}", labels=AGENT | {HASH_LABEL: label}, **ended) for i, label in enumerate(pods)]
    revisions = tuple(old_revision(number, label) for number, label in ((3, "c"), (1, "a"), (2, "b")))
    plan = decide(snap({}, made, ds(revision_history_limit=limit), old_revisions=revisions), NOW_MS)
    assert [each.hash for each in plan.prune] == gone.split()


def may_come(*nodes):
    return Unanswered(creates=frozenset(map(slot, nodes)), nodes={slot(node): node for node in nodes})


def test_what_was_sent_before_is_sent_first():
    """Whatever the order of nodes."""
    plan = decide(snap(numbered(5), unanswered=may_come("n3", "n5")), NOW_MS)
    assert list(plan.nodes.values()) == ["n3", "n5", "n1", "n2", "n4"]


def test_a_node_waits_for_a_reserved_name():
    """Its pod has ended and hangs on a finalizer, and another create of the same name may still land."""
    pods = dpods("n1", "f")
    plan = decide(snap(numbered(2), pods, unanswered=may_come("n1")), NOW_MS)
    assert created(plan) == ["n2"]
    assert decide(snap(numbered(2), pods), NOW_MS).nodes == {slot("n1", 1): "n1", slot("n2"): "n2"}


def test_blocked_names():
    """Names that others' pods bear are passed over."""
    plan = decide(snap(numbered(1), blocked=frozenset({slot("n1")})), NOW_MS)
    assert plan.nodes == {slot("n1", 1): "n1"}


def test_the_reference_of_the_owner_counts_not_the_name():
    """A pod of a namesake with another UID is no pod of ours, and keeps its name."""
    other = dpod("n1", owner_refs=(with_fields(DS_OURS, uid=OTHER_DS_UID),))
    plan = decide(snap(numbered(1), [other]), NOW_MS)
    assert (plan.claimed, plan.nodes) == ((), {slot("n1", 1): "n1"})
