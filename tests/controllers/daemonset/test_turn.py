"""Claims, what stops a turn about a DaemonSet, and what its status is made from."""

import pytest

from oarlock.controllers.daemonset.backoff import BackOff
from oarlock.controllers.daemonset.decide import decide
from oarlock.controllers.daemonset.status import status
from oarlock.controllers.flavour import DAEMONSET
from oarlock.controllers.objects.model import LabelSelector, label_selector
from oarlock.controllers.ownership.claim import gate_error
from oarlock.controllers.plan import Plan
from oarlock.controllers.pods.events import WARNING
from tests.controllers.builders import NOW_MS, S, with_fields
from tests.controllers.daemonset.daemon_builders import (
    AGENT,
    DS_UID,
    OTHER_DS_UID,
    created,
    dpods,
    ds,
    laid,
    numbered,
    old_revision,
    slot,
    snap,
    surging,
)


def test_claims():
    """Orphans that are selected are adopted and count, what is selected no longer is released and does not."""
    pods = laid({"n1": "?", "n2": "m", "n3": "x"})
    plan = decide(snap(numbered(3), pods), NOW_MS)
    assert (plan.adopt, plan.release, plan.claimed) == (pods[:1], pods[1:2], pods[:1])
    assert plan.nodes == {slot("n2", 1): "n2", slot("n3", 1): "n3"}, "their first names are borne by others' pods"


@pytest.mark.parametrize("letter", ["F", "S", "f"])
def test_pods_in_any_phase_are_claimed(letter):
    """Unlike those of a ReplicaSet; only what is being deleted is not adopted."""
    relabelled, orphan = (
        with_fields(dpods("n1", letter)[0], labels={"app": "else"}),
        with_fields(dpods("n2", letter)[0], owner_refs=()),
    )
    plan = decide(snap(numbered(2), (relabelled, orphan)), NOW_MS)
    assert plan.release == (relabelled,)
    assert plan.adopt == (() if letter == "f" else (orphan,))


def test_adoption_that_found_its_pod_gone_is_decided_again_without_it():
    """The node is empty then, but the name is not free for certain."""
    orphan = dpods("n1", "?")
    first = decide(snap(numbered(1), orphan), NOW_MS)
    again = decide(snap(numbered(1), orphan, adopted=frozenset()), NOW_MS)
    assert (first.adopt, created(first)) == (orphan, [])
    assert (again.adopt, again.claimed, again.nodes) == ((), (), {slot("n1", 1): "n1"})
    there = decide(snap(numbered(1), orphan, adopted=frozenset({orphan[0].uid})), NOW_MS)
    assert (there.adopt, there.claimed, created(there)) == ((), orphan, [])


def test_deleting_owner():
    """26.1.22: nothing at all, not even a status."""
    pods = laid({"n1": "R", "n2": "FRR", "n3": "?m"})
    plan = decide(snap(numbered(4), pods, ds(deleting_ms=NOW_MS)), NOW_MS)
    assert plan == Plan(invalid="being deleted")
    assert status(ds(deleting_ms=NOW_MS), plan, "", NOW_MS, False) is None


def test_owner_that_is_being_deleted_live():
    """26.1.22, while orphans wait: they have to be adopted first, and that is refused."""
    plan = decide(snap(numbered(1), dpods("n1", "?")), NOW_MS)
    assert (len(plan.adopt), plan.create, plan.delete) == (1, (), ())
    assert "has just been deleted" in gate_error(ds(), DAEMONSET.kind, DS_UID, NOW_MS)
    assert "is gone" in gate_error(ds(), DAEMONSET.kind, OTHER_DS_UID, 0)


@pytest.mark.parametrize("selector", [label_selector({}), None], ids=["empty", "none"])
def test_empty_selector(selector):
    """26.1.23: nothing is deleted, and the owner is told."""
    plan = decide(snap(numbered(1), laid({"n1": "RR", "n9": "R"}), ds(selector=selector)), NOW_MS)
    assert (plan.writes, plan.counts) == (False, None)
    assert plan.invalid
    [event] = plan.events
    assert (event.type, event.reason) == (WARNING, "SelectingAll")


def test_invalid_selector():
    """Left alone until it changes."""
    plan = decide(snap(numbered(1), (), ds(selector=LabelSelector(dict(AGENT), (), "not good"))), NOW_MS)
    assert plan == Plan(invalid="not good")


def test_unsatisfied_owner_only_claims_and_counts():
    """26.1.17, 26.1.31: while anything is unseen nothing is written about pods or history, and the status does not
    acknowledge the owner's generation.
    """
    pods = laid({"n1": "RR", "n2": "?", "n3": "F", "n5": "OO"})
    revisions = tuple(old_revision(i, f"h{i}") for i in range(12))
    facts = {"old_revisions": revisions}
    waiting, acting = (decide(snap(numbered(5), pods, satisfied=each, **facts), NOW_MS) for each in (False, True))
    assert acting.create
    assert acting.delete
    assert acting.prune
    assert (waiting.create, waiting.delete, waiting.prune, waiting.back_offs, waiting.events) == ((),) * 5
    assert (waiting.adopt, waiting.counts) == (acting.adopt, acting.counts)
    assert (waiting.observed, acting.observed) == (False, True)


@pytest.mark.parametrize(
    ("letters", "desired", "current", "ready", "updated"),
    [
        pytest.param("", 5, 0, 0, 0, id="26.1.18 before they are launched"),
        pytest.param("ppppp", 5, 5, 0, 5, id="26.1.18 launched"),
        pytest.param("nnnnn", 5, 5, 0, 5, id="26.1.30 none is ready"),
        pytest.param("RnRnn", 5, 5, 2, 5, id="26.1.30 two have turned ready"),
        pytest.param("ROFSt", 5, 5, 3, 4, id="old, failed, succeeded and ending ones count"),
    ],
)
def test_counts(letters, desired, current, ready, updated):
    """A pod for each letter, on a node each."""
    pods = laid({f"n{i}": letter for i, letter in enumerate(letters, 1)})
    counted = decide(snap(numbered(5), pods), NOW_MS).counts
    assert (counted.desired, counted.current, counted.ready, counted.updated) == (desired, current, ready, updated)


def test_observed_generation():
    """26.1.31: the status follows the generation of what was decided on."""
    owner = ds(generation=7)
    done = decide(snap(numbered(1), dpods("n1", "R"), owner), NOW_MS)
    assert status(owner, done, "", NOW_MS, False).observed_generation == 7
    unseen = decide(snap(numbered(1), dpods("n1", "R"), owner, satisfied=False), NOW_MS)
    assert status(owner, unseen, "", NOW_MS, False).observed_generation == 1


@pytest.mark.parametrize(
    ("letters", "owner", "again_ms"),
    [
        pytest.param("a", ds(min_ready_seconds=15), 5 * S, id="the first to become available"),
        pytest.param("b", ds(min_ready_seconds=15), None, id="it is"),
        pytest.param("a", ds(), None, id="at once"),
        pytest.param("Oa", surging(min_ready_seconds=15), 5 * S, id="beside an old one that is available"),
    ],
)
def test_looks_again_when_a_pod_becomes_available(letters, owner, again_ms):
    """No event tells of it."""
    assert decide(snap(numbered(1), dpods("n1", letters), owner), NOW_MS).again_ms == again_ms


def test_the_earlier_of_two_reasons_to_look_again():
    """A back-off and an availability."""
    owner, pods = ds(min_ready_seconds=15), laid({"n1": "F", "n2": "a"})
    for left_s, again_s in ((3, 3), (7, 5)):
        back_offs = {"n1": BackOff(1, left_s * S, NOW_MS)}
        assert decide(snap(numbered(2), pods, owner, back_offs=back_offs), NOW_MS).again_ms == again_s * S
