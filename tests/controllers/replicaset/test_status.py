"""What the status says, when it is written and how."""

import json

import pytest

from oarlock.controllers.flavour import REPLICASET
from oarlock.controllers.objects.availability import look_again_ms
from oarlock.controllers.objects.model import Condition, ReplicaSetStatus
from oarlock.controllers.plan import Plan, Snapshot, Unanswered
from oarlock.controllers.replicaset.decide import decide
from oarlock.controllers.replicaset.status import new_status, status, status_patch
from tests.controllers.builders import NOW_MS, S, pod, pods, rs, slot_names, with_fields
from tests.controllers.ownership.test_claim import REPLICATIONCONTROLLER

LABELS = {"app": "web", "v": "1"}
FULL, PARTLY = pod("full", labels=LABELS), pod("partly")
NOT_READY = pod("not-ready", labels=LABELS, ready=False, ready_since_ms=0)


@pytest.mark.parametrize(
    ("given_pods", "min_ready_seconds", "counts"),
    [
        pytest.param([FULL], 0, (1, 1, 1, 1), id="11.3.1 one fully labelled of one"),
        pytest.param([PARTLY], 0, (1, 0, 1, 1), id="11.3.1 one not fully labelled"),
        pytest.param([FULL, with_fields(FULL, uid="b")], 0, (2, 2, 2, 2), id="11.3.1 two full"),
        pytest.param([FULL, PARTLY], 0, (2, 1, 2, 2), id="11.3.1 one full, one not; 11.5.12"),
        pytest.param([NOT_READY], 0, (1, 1, 0, 0), id="11.3.2 not ready"),
        pytest.param(
            [pod("a", labels=LABELS, ready_since_ms=NOW_MS - S)], 3600, (1, 1, 1, 0), id="11.3.3 minReadySeconds 3600"
        ),
        pytest.param([pod("a", labels={**LABELS, "more": "x"})], 0, (1, 1, 1, 1), id="extra labels are allowed"),
        pytest.param([], 0, (0, 0, 0, 0), id="none"),
    ],
)
def test_counts(given_pods, min_ready_seconds, counts):
    """Replicas, fully labelled, ready, available."""
    owner = rs(template_labels=LABELS, min_ready_seconds=min_ready_seconds)
    new = new_status(owner, Plan(claimed=tuple(given_pods)), "", NOW_MS, False)
    assert (new.replicas, new.fully_labeled, new.ready, new.available) == counts


@pytest.mark.parametrize(
    ("flavour", "cluster_reports", "letters", "terminating"),
    [
        pytest.param(REPLICASET, False, "Rtt", None, id="11.3.4 gate off: absent"),
        pytest.param(REPLICASET, True, "RR", 0, id="11.3.4 on with none: 0"),
        pytest.param(REPLICASET, True, "Rtt", 2, id="11.3.4 on with two"),
        pytest.param(REPLICATIONCONTROLLER, True, "Rtt", None, id="11.3.4 the kind has no such field: absent"),
    ],
)
def test_terminating(flavour, cluster_reports, letters, terminating):
    """Reported where both the cluster and the kind have the field; nothing and 0 differ."""
    owner = rs(2)
    plan = decide(Snapshot(owner, pods(letters)), NOW_MS)
    reports = flavour.reports_terminating(cluster_reports)
    assert new_status(owner, plan, "", NOW_MS, reports).terminating == terminating


CREATE_FAILED = Condition("ReplicaFailure", "True", "FailedCreate", "no", NOW_MS)
OLD_FAILURE = Condition("ReplicaFailure", "True", "FailedCreate", "first text", NOW_MS - S)
FOREIGN = Condition("StatusUpdate", "True", "E2E", "set by a test", NOW_MS - S)


@pytest.mark.parametrize(
    ("plan", "error", "before", "after"),
    [
        pytest.param(Plan(diff=-2), "no", (), (CREATE_FAILED,), id="11.3.5 too few: FailedCreate"),
        pytest.param(
            Plan(diff=2),
            "no",
            (),
            (with_fields(CREATE_FAILED, reason="FailedDelete"),),
            id="11.3.5 too many: FailedDelete",
        ),
        pytest.param(
            Plan(diff=-1, delete=(("a", "uid-a"),)),
            "no",
            (),
            (with_fields(CREATE_FAILED, reason="FailedDelete"),),
            id="strict: a finished pod could not be deleted",
        ),
        pytest.param(Plan(), "no", (), (with_fields(CREATE_FAILED, reason=""),), id="neither: no reason"),
        pytest.param(Plan(diff=-2), "no", (OLD_FAILURE,), (OLD_FAILURE,), id="11.3.5 stays as it is on further errors"),
        pytest.param(Plan(diff=2), "no", (OLD_FAILURE,), (OLD_FAILURE,), id="also when it is now too many"),
        pytest.param(Plan(diff=-2), "", (OLD_FAILURE,), (), id="11.3.5 removed without error"),
        pytest.param(Plan(diff=-2), "", (), (), id="11.3.5 no error, none before"),
        pytest.param(Plan(), "", (FOREIGN, OLD_FAILURE), (FOREIGN,), id="foreign ones stay"),
        pytest.param(Plan(diff=-1), "no", (FOREIGN,), (FOREIGN, CREATE_FAILED), id="11.7.8 beside a foreign one"),
    ],
)
def test_replica_failure(plan, error, before, after):
    """Appears with the first failure, is not refreshed, goes when nothing fails."""
    owner = rs(status=ReplicaSetStatus(conditions=before))
    assert new_status(owner, plan, error, NOW_MS, False).conditions == after


@pytest.mark.parametrize(
    ("diff", "fields", "attempted", "error", "stays"),
    [
        pytest.param(-2, {}, False, "", True, id="too few, and nothing was attempted: nothing is known"),
        pytest.param(2, {}, False, "", True, id="too many"),
        pytest.param(-2, {}, True, "", False, id="what was attempted went well"),
        pytest.param(-2, {}, True, "no", True, id="it failed again"),
        pytest.param(-2, {}, False, "no", True, id="the template makes no pods"),
        pytest.param(0, {}, False, "", False, id="nothing is to be done: over"),
        pytest.param(-2, {"deleting_ms": NOW_MS}, False, "", False, id="being deleted: never attempted again"),
    ],
)
def test_replica_failure_after_a_turn_that_attempts_nothing(diff, fields, attempted, error, stays):
    """It is neither taken away nor written anew."""
    owner = rs(status=ReplicaSetStatus(conditions=(FOREIGN, OLD_FAILURE)), **fields)
    new = new_status(owner, Plan(diff=diff), error, NOW_MS, False, attempted)
    assert new.conditions == ((FOREIGN, OLD_FAILURE) if stays else (FOREIGN,))


UP_TO_DATE = ReplicaSetStatus(2, 2, 2, 2, 0, 1)


@pytest.mark.parametrize(
    ("current", "generation", "error", "due"),
    [
        pytest.param(UP_TO_DATE, 1, "", False, id="nothing has changed"),
        pytest.param(with_fields(UP_TO_DATE, replicas=1), 1, "", True, id="replicas"),
        pytest.param(with_fields(UP_TO_DATE, fully_labeled=1), 1, "", True, id="fully labelled"),
        pytest.param(with_fields(UP_TO_DATE, ready=1), 1, "", True, id="ready"),
        pytest.param(with_fields(UP_TO_DATE, available=1), 1, "", True, id="available"),
        pytest.param(with_fields(UP_TO_DATE, terminating=None), 1, "", True, id="11.2.28 from absent to 0"),
        pytest.param(UP_TO_DATE, 2, "", True, id="11.5.3 the generation alone"),
        pytest.param(UP_TO_DATE, 1, "no", True, id="a condition appears"),
    ],
)
def test_written_only_when_due(current, generation, error, due):
    """No request if all of it is said already; what was written is never due again."""
    owner = rs(2, status=current, generation=generation)
    plan = decide(Snapshot(owner, pods("RR")), NOW_MS)
    new = status(owner, plan, error, NOW_MS, True)
    assert (new is not None) is due
    if new is not None:
        assert new.observed_generation == generation
        assert status(with_fields(owner, status=new), plan, error, NOW_MS + S, True) is None


def test_status_follows_while_unsatisfied():
    """11.2.4: nothing is created while something is outstanding, yet the status moves with the pods."""
    owner = rs(2)
    plan = decide(Snapshot(owner, pods("R"), satisfied=False), NOW_MS)
    assert status(owner, plan, "", NOW_MS, True) == ReplicaSetStatus(1, 1, 1, 1, 0, 1)


def deletes(letters: str, count: int) -> Unanswered:
    return Unanswered(deletes=frozenset(pod.uid for pod in pods(letters)[:count]))


@pytest.mark.parametrize(
    ("letters", "fields", "observed"),
    [
        pytest.param("RR", {}, 3, id="all is known"),
        pytest.param("R", {}, 3, id="one is to come: this turn creates it"),
        pytest.param("RRR", {}, 3, id="one is to go"),
        pytest.param("RR", {"satisfied": False}, 1, id="the cache has yet to show our writes"),
        pytest.param(
            "R", {"unanswered": Unanswered(creates=frozenset(slot_names(1)))}, 3, id="one may come, and is wanted"
        ),
        pytest.param(
            "R",
            {"unanswered": Unanswered(creates=frozenset(slot_names(1)), quiet=frozenset(slot_names(1)))},
            3,
            id="one may come, and is not asked for again now",
        ),
        pytest.param(
            "RR", {"unanswered": Unanswered(creates=frozenset(slot_names(1)))}, 3, id="it has, and may once more"
        ),
        pytest.param("RR", {"unanswered": Unanswered(creates=frozenset(slot_names(2)))}, 1, id="one more may come"),
        pytest.param(
            "R", {"unanswered": Unanswered(creates=frozenset(slot_names(1, 2)))}, 1, id="two may come, one is wanted"
        ),
        pytest.param(
            "RRR",
            {"unanswered": Unanswered(creates=frozenset(slot_names(2)))},
            1,
            id="one is to go, and may come again",
        ),
        pytest.param("RRR", {"unanswered": deletes("RRR", 1)}, 3, id="one may go, which is one too many"),
        pytest.param("RR", {"unanswered": deletes("RR", 1)}, 1, id="one may go that is wanted"),
        pytest.param("RRR", {"unanswered": deletes("RRR", 2)}, 1, id="one too many may go"),
        pytest.param("RR", {"unanswered": Unanswered(deletes=frozenset({"uid-x"}))}, 3, id="it has gone"),
        pytest.param(
            "RR", {"unanswered": Unanswered(passed=frozenset(slot_names(3)))}, 3, id="a name that was refused"
        ),
        pytest.param("RR", {"unanswered": Unanswered(resting=frozenset(slot_names(3)))}, 3, id="a name that rests"),
    ],
)
def test_observed_generation(letters, fields, observed):
    """A new generation is observed once no write of an earlier one may matter. Nothing is written twice, and what was
    observed stays so.
    """
    owner = rs(2, generation=3)
    plan = decide(Snapshot(owner, pods(letters), **fields), NOW_MS)
    new = status(owner, plan, "", NOW_MS, True)
    assert new is not None
    assert new.observed_generation == observed
    after = with_fields(owner, status=new)
    again = decide(Snapshot(after, pods(letters), **fields), NOW_MS)
    assert status(after, again, "", NOW_MS, True) is None, "written once, not in every turn until it is observed"
    settled = status(after, decide(Snapshot(after, pods(letters)), NOW_MS), "", NOW_MS, True)
    assert (settled or new).observed_generation == 3, "it catches up with the first turn that may say so"
    current = with_fields(owner, status=with_fields(new, observed_generation=3))
    kept = status(current, decide(Snapshot(current, pods(letters), **fields), NOW_MS), "", NOW_MS, True)
    assert kept is None, "it is never taken back"


@pytest.mark.parametrize(
    ("replicas", "min_ready_seconds", "fields", "available"),
    [
        pytest.param(3, 1, {}, 3, id="none goes"),
        pytest.param(2, 1, {}, 2, id="one goes now"),
        pytest.param(2, 0, {}, 3, id="one goes now, and whatever changes it stops that"),
        pytest.param(3, 1, {"unanswered": Unanswered(leaving=frozenset({"uid-b"}))}, 2, id="one may go, or has gone"),
        pytest.param(3, 0, {"unanswered": Unanswered(leaving=frozenset({"uid-b"}))}, 3, id="it has not: it is ready"),
    ],
)
def test_what_time_alone_makes_available_while_it_goes(replicas, min_ready_seconds, fields, available):
    """It was chosen to go since it was not available. Whoever relied on it now would take another pod."""
    given_pods = tuple(pod(name, ready_since_ms=NOW_MS - S // 2) for name in "abc")
    owner = rs(replicas, min_ready_seconds=min_ready_seconds)
    plan = decide(Snapshot(owner, given_pods, **fields), NOW_MS)
    assert new_status(owner, plan, "", NOW_MS + S, False).available == available


def test_no_status_for_an_invalid_selector():
    """The turn ends before anything is written."""
    assert status(rs(), Plan(invalid="broken"), "", NOW_MS, True) is None


def test_availability_of_four():
    """11.2.23: pending, ready now, for 2 s, for 4.3 s, minReadySeconds 5: ready 3, available 0, again in
    0.7 s.
    """
    given = (
        pod("a", phase="Pending", ready=False, ready_since_ms=0),
        pod("b", ready_since_ms=NOW_MS),
        pod("c", ready_since_ms=NOW_MS - 2000),
        pod("d", ready_since_ms=NOW_MS - 4300),
    )
    owner = rs(4, min_ready_seconds=5)
    plan = decide(Snapshot(owner, given), NOW_MS)
    new = status(owner, plan, "", NOW_MS, True)
    assert new is not None
    assert (new.ready, new.available) == (3, 0)
    assert look_again_ms(owner, plan.claimed, new, NOW_MS, NOW_MS) == 700


def patch_of(owner, new):
    return json.loads(status_patch(owner, new, "77"))


def test_patch_carries_its_preconditions():
    """Refused if the owner is another or has changed since; nothing but the status is sent."""
    owner = rs()
    patch = patch_of(owner, UP_TO_DATE)
    assert patch["metadata"] == {"uid": owner.uid, "resourceVersion": "77"}
    assert patch["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }
    assert set(patch) == {"metadata", "status"}


def applied(patch, target):
    """RFC 7396 over plain dicts."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result


@pytest.mark.parametrize(
    ("old", "new", "stored"),
    [
        pytest.param(
            ReplicaSetStatus(2, 2, 2, 2, 1, 1), ReplicaSetStatus(), {"replicas": 0}, id="zeros and absent fields go"
        ),
        pytest.param(
            ReplicaSetStatus(),
            ReplicaSetStatus(terminating=0),
            {"replicas": 0, "terminatingReplicas": 0},
            id="0 terminating stays",
        ),
        pytest.param(
            ReplicaSetStatus(conditions=(OLD_FAILURE, FOREIGN)),
            ReplicaSetStatus(conditions=(FOREIGN,)),
            {
                "replicas": 0,
                "conditions": [
                    {
                        "type": "StatusUpdate",
                        "status": "True",
                        "lastTransitionTime": "2025-06-15T15:06:39Z",
                        "reason": "E2E",
                        "message": "set by a test",
                    }
                ],
            },
            id="a removed condition goes, the foreign one stays whole",
        ),
        pytest.param(
            ReplicaSetStatus(conditions=(OLD_FAILURE,)),
            ReplicaSetStatus(),
            {"replicas": 0},
            id="the last condition goes",
        ),
        pytest.param(
            ReplicaSetStatus(),
            ReplicaSetStatus(conditions=(Condition("T", "False"),)),
            {"replicas": 0, "conditions": [{"type": "T", "status": "False"}]},
            id="a condition without the optional fields",
        ),
    ],
)
def test_patch_leaves_what_a_put_would(old, new, stored):
    """The stored status is that of a typed client's PUT."""
    before = applied(patch_of(rs(), old)["status"], {})
    assert applied(patch_of(rs(status=old), new)["status"], before) == stored


def test_unchanged_conditions_are_not_sent():
    """A list would be replaced as a whole for nothing."""
    owner = rs(status=ReplicaSetStatus(conditions=(FOREIGN,)))
    assert "conditions" not in patch_of(owner, with_fields(owner.status, replicas=1))["status"]
