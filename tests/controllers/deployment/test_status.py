"""The status of a Deployment. Numbers are those of section 23.5 of the upstream cases."""

from typing import Any

import pytest

from oarlock.controllers.deployment.annotations import REVISION
from oarlock.controllers.deployment.events import NO_LAST_REVISION
from oarlock.controllers.deployment.model import RECREATE, DeploymentCondition, DeploymentStatus
from oarlock.controllers.deployment.plan import Creation, Plan, Rollback, Rollout, StatusPlan, StatusWrite
from oarlock.controllers.deployment.progress import COMPLETE, CREATE_ERROR, CREATED, FOUND, PAUSED, UPDATED
from oarlock.controllers.deployment.status import status, terminating
from oarlock.controllers.objects.model import Condition, ReplicaSetStatus
from oarlock.controllers.objects.status import get_condition
from tests.controllers.builders import NOW_MS, S, with_fields
from tests.controllers.deployment.deployment_builders import owned, said
from tests.controllers.deployment.sizes_builders import dep

NEW, OLD = owned("new", 4, pods=3, available=2), owned("old", 5, pods=6, available=4, age_s=90)
FAILURE = Condition("ReplicaFailure", "True", "FailedCreate", "quota", NOW_MS - 9 * S)
FAILED = ("FailedCreate", "quota", NOW_MS - 9 * S, 1)


def made(deployment: Any, plan: Plan, **fields: Any) -> StatusPlan:
    base: dict[str, Any] = {"created": False, "create_error": "", "error": "", "now_ms": NOW_MS}
    return status(deployment, plan, **(base | fields))


def written(deployment: Any, plan: Plan, **fields: Any) -> DeploymentStatus:
    write = made(deployment, plan, **fields).write
    assert write is not None
    return write.status


def reasons(found: DeploymentStatus) -> list[str]:
    return [each.reason for each in found.conditions]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(NEW, (OLD,), (9, 3, 9, 6, 3), id="23.5.4 specs and pods"),
        pytest.param(None, (OLD,), (6, 0, 6, 4, 1), id="23.5.4 none is new"),
        pytest.param(NEW, (), (3, 3, 3, 2, 2), id="23.5.4 none is old"),
        pytest.param(None, (), (0, 0, 0, 0, 0), id="none at all"),
        pytest.param(owned("new", 1, pods=4, available=4), (), (4, 4, 4, 4, 0), id="never below 0"),
    ],
)
def test_counts(new, old, expected):
    """23.5.4: replicas, updated, ready, available, unavailable."""
    found = written(dep(generation=7), Plan(Rollout(new, old)))
    counts = (found.replicas, found.updated, found.ready, found.available, found.unavailable)
    assert (counts, found.observed_generation) == (expected, 7)


OBSERVED_3, OBSERVED_1 = ReplicaSetStatus(terminating=3, observed_generation=1), ReplicaSetStatus(terminating=1)
FRESH, SILENT = ReplicaSetStatus(), ReplicaSetStatus(observed_generation=1)


@pytest.mark.parametrize(
    ("statuses", "total"),
    [
        pytest.param([OBSERVED_3], 3, id="23.5.4 one"),
        pytest.param([OBSERVED_3, OBSERVED_1], 4, id="23.5.4 two"),
        pytest.param([FRESH], 0, id="23.5.4 never observed"),
        pytest.param([OBSERVED_3, OBSERVED_1, FRESH], 4, id="23.5.4 one of three never observed"),
        pytest.param([SILENT], None, id="23.5.4 observed, and not said"),
        pytest.param([OBSERVED_3, OBSERVED_1, FRESH, SILENT], None, id="23.5.4 one of them does not say"),
        pytest.param([], 0, id="none"),
    ],
)
def test_terminating(statuses, total):
    """23.5.4 and section 21."""
    old = tuple(owned(f"o{i}", status=each) for i, each in enumerate(statuses))
    assert terminating(old) == total
    assert written(dep(), Plan(Rollout(None, old))).terminating == total
    assert written(dep(), Plan(Rollout(None, old)), report_terminating=False).terminating is None


@pytest.mark.parametrize(
    ("fields", "available", "expected"),
    [
        pytest.param({}, 9, "True", id="none given: one may be missing"),
        pytest.param({}, 8, "False", id="but not two"),
        pytest.param({"max_unavailable": "25%"}, 8, "True", id="two of ten may be"),
        pytest.param({"max_unavailable": 20}, 0, "True", id="all may be"),
        pytest.param({"strategy": RECREATE}, 9, "False", id="none may be under Recreate"),
        pytest.param({"strategy": RECREATE}, 10, "True", id="all are there"),
        pytest.param({"max_unavailable": "x"}, 9, "False", id="none where nobody can read it"),
        pytest.param({"max_unavailable": "x"}, 10, "True", id="all are there all the same"),
    ],
)
def test_available(fields, available, expected):
    """Section 16: of 10."""
    new = owned("new", 10, available=available)
    found = get_condition(written(dep(10, **fields), Plan(Rollout(new))).conditions, "Available")
    has = {"True": ("MinimumReplicasAvailable", "has"), "False": ("MinimumReplicasUnavailable", "does not have")}
    reason, verb = has[expected]
    text = f"Deployment {verb} minimum availability."
    assert found == DeploymentCondition("Available", expected, reason, text, NOW_MS, NOW_MS)


DONE = Plan(Rollout(owned("new", 3, 1), evaluated=True), revision="1")
DONE_DEPLOYMENT = dep(3, progress_deadline_seconds=90, annotations={REVISION: "1"})
DONE_STATUS = written(DONE_DEPLOYMENT, DONE)


def test_nothing_is_written_twice():
    """Neither a status nor a revision that the Deployment has already; at any later time."""
    assert reasons(DONE_STATUS) == ["MinimumReplicasAvailable", COMPLETE]
    settled = with_fields(DONE_DEPLOYMENT, status=DONE_STATUS)
    assert made(settled, DONE, now_ms=NOW_MS + 500 * S) == StatusPlan(None)
    unnumbered = with_fields(settled, annotations={})
    assert made(unnumbered, DONE, now_ms=NOW_MS + 500 * S) == StatusPlan(StatusWrite(DONE_STATUS, "1"))


def test_order_and_times_of_conditions():
    """One that changes comes last; the others keep their places, and what stays keeps its times."""
    foreign = DeploymentCondition("Foreign", "True", "X", "", 1, 1)
    stored = with_fields(DONE_STATUS, conditions=(*DONE_STATUS.conditions, foreign))
    fewer = with_fields(DONE, rollout=Rollout(owned("new", 3, 1, pods=3, available=1), evaluated=True))
    found = written(with_fields(DONE_DEPLOYMENT, status=stored), fewer, now_ms=NOW_MS + S)
    assert [each.type for each in found.conditions] == ["Progressing", "Foreign", "Available"]
    assert found.conditions[0] == DONE_STATUS.conditions[1]
    assert found.conditions[2].last_transition_ms == NOW_MS + S


CREATE = Plan(Rollout(None, (), evaluated=True), create=Creation("web-5d", "5d", 3, {}), revision="4")


@pytest.mark.parametrize(
    ("deployment", "plan", "fields", "expected"),
    [
        pytest.param(
            {}, CREATE, {"created": True}, ("True", CREATED, 'Created new replica set "web-5d"'), id="created"
        ),
        pytest.param({}, CREATE, {}, None, id="not created: another turn had done it"),
        pytest.param(
            {},
            CREATE,
            {"create_error": "quota"},
            ("False", CREATE_ERROR, 'Failed to create new replica set "web-5d": quota'),
            id="not created",
        ),
        pytest.param({"progress_deadline_seconds": None}, CREATE, {"created": True}, None, id="without a deadline"),
        pytest.param(
            {"progress_deadline_seconds": None}, CREATE, {"create_error": "x"}, None, id="no deadline, not created"
        ),
        pytest.param(
            {}, Plan(Rollout(NEW)), {}, ("True", FOUND, 'Found new replica set "new"'), id="found, and not judged"
        ),
        pytest.param({"deleting_ms": 1}, Plan(Rollout(NEW)), {}, None, id="being deleted"),
        pytest.param(
            {"paused": True}, Plan(Rollout(NEW)), {}, ("Unknown", PAUSED, "Deployment is paused"), id="paused"
        ),
    ],
)
def test_news(deployment, plan, fields, expected):
    """Sections 7.2 and 14.1: what the turn did goes into Progressing."""
    found = written(dep(3, **({"progress_deadline_seconds": 90} | deployment)), plan, **fields)
    progressing = get_condition(found.conditions, "Progressing")
    assert (progressing and (progressing.status, progressing.reason, progressing.message)) == expected


@pytest.mark.parametrize(
    ("fields", "revision", "observed"),
    [
        pytest.param({"created": True}, "4", 2, id="created"),
        pytest.param({}, "", 2, id="made by another turn: its revision comes with the next one"),
        pytest.param({"create_error": "quota"}, "", 1, id="not created: nothing was observed"),
        pytest.param({"created": True, "error": "conflict"}, "4", 1, id="created, and not scaled"),
    ],
)
def test_after_a_creation(fields, revision, observed):
    """Which revision and which generation the Deployment gets."""
    write = made(dep(3, generation=2, status=said()), CREATE, **fields).write
    assert write is not None
    assert (write.revision, write.status.observed_generation) == (revision, observed)


def test_a_failure_stops_nothing_but_the_generation():
    """A rollout whose writes fail times out as well."""
    late = dep(3, generation=2, progress_deadline_seconds=5, status=said(3, 1, 3, 1, reason=UPDATED))
    rollout = Rollout(owned("new", 1, available=0), (owned("old", 2, available=1),), evaluated=True)
    found = written(late, Plan(rollout), error="refused")
    assert (found.observed_generation, reasons(found)[-1]) == (1, "ProgressDeadlineExceeded")


@pytest.mark.parametrize(
    ("new", "olds", "evaluated", "expected"),
    [
        pytest.param([FAILURE], [], True, FAILED, id="the new one's"),
        pytest.param([], [[], [FAILURE]], True, FAILED, id="an old one's"),
        pytest.param([FAILURE], [[with_fields(FAILURE, reason="FailedDelete")]], True, FAILED, id="the new one's"),
        pytest.param([], [[]], True, None, id="none: it goes"),
        pytest.param([], [[]], False, ("Before", "", 1, 1), id="not judged: it stays"),
    ],
)
def test_failures_of_replicasets(new, olds, evaluated, expected):
    """Section 17.1, step 4: reason, message, times. It was True before, so the second time stays."""

    def failing(name: str, conditions: list[Condition]) -> Any:
        return owned(name, status=ReplicaSetStatus(conditions=tuple(conditions)))

    before = DeploymentCondition("ReplicaFailure", "True", "Before", "", 1, 1)
    rollout = Rollout(failing("new", new), tuple(failing(f"o{i}", each) for i, each in enumerate(olds)), evaluated)
    found = get_condition(written(dep(status=said(conditions=(before,))), Plan(rollout)).conditions, "ReplicaFailure")
    assert (found and (found.reason, found.message, found.last_update_ms, found.last_transition_ms)) == expected


@pytest.mark.parametrize(
    ("evaluated", "reason", "again_ms"),
    [
        pytest.param(True, UPDATED, 31 * S, id="what is left of 90 s, and a second"),
        pytest.param(False, UPDATED, None, id="paused, scaled or being deleted"),
        pytest.param(True, "", None, id="nothing to count from"),
    ],
)
def test_look_again(evaluated, reason, again_ms):
    """Only where Progressing is judged."""
    rollout = Rollout(None, (owned("old", 3),), evaluated)
    deployment = dep(3, progress_deadline_seconds=90, status=said(3, 0, 3, 3, reason=reason))
    assert made(deployment, Plan(rollout)).again_ms == again_ms


@pytest.mark.parametrize(
    ("observed", "expected"),
    [pytest.param(1, 2, id="said once"), pytest.param(2, None, id="and not again")],
)
def test_23_6_3_an_invalid_one(observed, expected):
    """23.6.3: that the generation was observed is all that is said."""
    present = said(5, 4, 3, 2, reason=UPDATED, observed_generation=observed)
    write = made(dep(generation=2, status=present), Plan(invalid="the selector is empty")).write
    assert write == (StatusWrite(with_fields(present, observed_generation=2)) if expected else None)


def test_after_a_rollback():
    """The Deployment that the status would be for is there no more."""
    assert made(dep(), Plan(rollback=Rollback(None, NO_LAST_REVISION))) == StatusPlan(None)


def test_the_collision_count_is_kept():
    """Who raises it, writes it: collision_patch."""
    assert written(dep(status=said(collision_count=3)), Plan(Rollout(NEW))).collision_count == 3
