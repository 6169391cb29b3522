"""The condition Progressing. Numbers are those of sections 23.4 and 23.5 of the upstream cases."""

import pytest

from oarlock.controllers.deployment.model import DeploymentCondition
from oarlock.controllers.deployment.progress import (
    COMPLETE,
    CREATE_ERROR,
    CREATED,
    FOUND,
    PAUSED,
    PROGRESSING,
    RESUMED,
    TIMED_OUT,
    UPDATED,
    has_progressed,
    has_timed_out,
    is_complete,
    judge,
    look_again_ms,
    paused_or_resumed,
    set_condition,
)
from oarlock.controllers.objects.status import get_condition, remove_condition
from tests.controllers.builders import NOW_MS, S, with_fields
from tests.controllers.deployment.deployment_builders import condition, said
from tests.controllers.deployment.sizes_builders import dep

AVAILABLE = DeploymentCondition("Available", "True", "MinimumReplicasAvailable", "", 1, 1)
OURS = DeploymentCondition(PROGRESSING, "True", UPDATED, "", 2, 2)
FOREIGN = DeploymentCondition("Foreign", "True", "X", "", 3, 3)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(with_fields(OURS, message="other", last_update_ms=9), (OURS, FOREIGN), id="23.5.7 same reason"),
        pytest.param(
            DeploymentCondition(PROGRESSING, "True", COMPLETE, "", 9, 9),
            (FOREIGN, DeploymentCondition(PROGRESSING, "True", COMPLETE, "", 9, 2)),
            id="23.5.7 other reason: the transition stays, the place is the last",
        ),
        pytest.param(
            DeploymentCondition(PROGRESSING, "False", TIMED_OUT, "", 9, 9),
            (FOREIGN, DeploymentCondition(PROGRESSING, "False", TIMED_OUT, "", 9, 9)),
            id="23.5.7 other status: both times are new",
        ),
        pytest.param(AVAILABLE, (OURS, FOREIGN, AVAILABLE), id="23.5.7 a new one"),
    ],
)
def test_set(new, expected):
    """23.5.7: what is set, and in which order the conditions are afterwards."""
    assert set_condition((OURS, FOREIGN), new) == expected


def test_23_5_7_get_and_remove():
    """By type; what is not there is none, and is removed without a word."""
    assert get_condition((OURS, FOREIGN), "Foreign") == FOREIGN
    assert get_condition((OURS,), "Foreign") is None
    assert remove_condition((OURS, FOREIGN), PROGRESSING) == (FOREIGN,)
    assert remove_condition((FOREIGN,), PROGRESSING) == (FOREIGN,)


@pytest.mark.parametrize(
    ("counts", "observed", "expected"),
    [
        pytest.param((5, 5, 5, 4), 1, False, id="23.5.8 one is not available"),
        pytest.param((5, 5, 5, 3), 1, False, id="23.5.8 two are not"),
        pytest.param((5, 5, 5, 5), 1, True, id="23.5.8 complete"),
        pytest.param((5, 5, 4, 5), 1, False, id="23.5.8 an old one is left"),
        pytest.param((1, 2, 1, 1), 1, False, id="23.5.8 a pod too many"),
        pytest.param((1, 1, 1, 0), 1, False, id="23.5.8 the only one is not available"),
        pytest.param((5, 5, 5, 5), 0, False, id="of an older generation"),
    ],
)
def test_complete(counts, observed, expected):
    """23.5.8: desired, current, updated, available."""
    desired, current, updated, available = counts
    status = said(current, updated, available, available, observed_generation=observed)
    assert is_complete(dep(desired), status) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param((10, 4, 0, 0), (10, 6, 0, 0), True, id="23.5.9 more updated ones"),
        pytest.param((10, 4, 0, 0), (10, 4, 0, 0), False, id="23.5.9 as before"),
        pytest.param((10, 4, 0, 0), (8, 4, 0, 0), True, id="23.5.9 fewer old ones"),
        pytest.param((10, 7, 0, 0), (10, 6, 0, 0), False, id="23.5.9 fewer updated ones"),
        pytest.param((10, 4, 7, 7), (8, 8, 5, 5), True, id="23.5.9 more updated ones, fewer available"),
        pytest.param((10, 4, 6, 0), (10, 4, 7, 0), True, id="23.5.9 one more is ready"),
        pytest.param((10, 4, 6, 5), (10, 4, 6, 6), True, id="23.5.9 one more is available"),
    ],
)
def test_progressed(old, new, expected):
    """23.5.9: current, updated, ready, available."""
    assert has_progressed(said(*old), said(*new)) == expected


@pytest.mark.parametrize(
    ("deadline_s", "conditions", "expected"),
    [
        pytest.param(None, (condition(UPDATED, ago_s=11),), False, id="23.5.10 no deadline"),
        pytest.param(10, (condition(UPDATED, ago_s=11),), True, id="23.5.10 11 s of 10"),
        pytest.param(10, (condition(UPDATED, ago_s=9),), False, id="23.5.10 9 s of 10"),
        pytest.param(10, (condition(UPDATED, ago_s=10),), False, id="just now is not too late"),
        pytest.param(10, (condition(COMPLETE, ago_s=11),), False, id="23.5.10 it was complete"),
        pytest.param(10, (condition(TIMED_OUT, "False", ago_s=1),), True, id="once late, late"),
        pytest.param(10, (condition(CREATE_ERROR, "False", ago_s=11),), True, id="what cannot be created counts too"),
        pytest.param(10, (), False, id="nothing to count from"),
    ],
)
def test_timed_out(deadline_s, conditions, expected):
    """23.5.10. The largest int32 as a deadline is none (test_wire.py)."""
    deployment = dep(progress_deadline_seconds=deadline_s)
    assert has_timed_out(deployment, said(conditions=conditions), NOW_MS) == expected


@pytest.mark.parametrize(
    ("deadline_s", "present", "again_ms"),
    [
        pytest.param(None, condition(UPDATED, ago_s=5), None, id="23.4.1 no deadline"),
        pytest.param(10, None, None, id="23.4.1 no condition"),
        pytest.param(10, condition(TIMED_OUT, "False"), None, id="23.4.1 timed out already"),
        pytest.param(10, condition(UPDATED, ago_s=5), 6 * S, id="23.4.1 what is left, and a second"),
        pytest.param(10, condition(UPDATED, ago_s=9.5), 501, id="less than a second: just after it"),
        pytest.param(10, condition(UPDATED, ago_s=10), 1, id="it is late from the next moment on"),
        pytest.param(10, condition(UPDATED, ago_s=60), 1, id="23.4.1 overdue: at once"),
        pytest.param(10, condition(COMPLETE, ago_s=60), None, id="it was complete, and cannot time out"),
    ],
)
def test_look_again(deadline_s, present, again_ms):
    """23.4.1: when the time alone may have changed the status."""
    conditions = (present,) if present else ()
    deployment = dep(3, progress_deadline_seconds=deadline_s)
    assert look_again_ms(deployment, said(3, 1, 1, 1, conditions=conditions), NOW_MS) == again_ms


def test_23_4_1_nothing_to_wait_for_when_complete():
    """23.4.1: complete by what the status says now, whatever the condition says yet."""
    status = said(3, 3, 3, 3, reason=UPDATED)
    assert look_again_ms(dep(3, progress_deadline_seconds=90), status, NOW_MS) is None


GOING, READY = (3, 1, 1, 1), (3, 3, 3, 3)


@pytest.mark.parametrize(
    ("present", "old", "new", "expected"),
    [
        pytest.param(None, GOING, GOING, None, id="23.4.2 nothing said, nothing moved"),
        pytest.param(None, GOING, (3, 2, 1, 1), ("True", UPDATED, 0, 0), id="23.4.2 it moves, for the first time"),
        pytest.param(
            condition(UPDATED), GOING, (3, 2, 1, 1), ("True", UPDATED, 0, 120), id="23.4.2 it moves on: only the update"
        ),
        pytest.param(condition(CREATED), GOING, (3, 2, 1, 1), ("True", UPDATED, 0, 120), id="23.4.2 another reason"),
        pytest.param(
            condition(TIMED_OUT, "False"), GOING, (3, 2, 1, 1), ("True", UPDATED, 0, 0), id="23.4.2 late, and it moves"
        ),
        pytest.param(
            condition(RESUMED, "Unknown"), GOING, (3, 2, 1, 1), ("True", UPDATED, 0, 0), id="resumed, and it moves"
        ),
        pytest.param(condition(UPDATED), GOING, GOING, ("True", UPDATED, 60, 120), id="23.4.2 nothing moves, in time"),
        pytest.param(condition(UPDATED), GOING, READY, ("True", COMPLETE, 0, 120), id="23.4.2 complete"),
        pytest.param(condition(TIMED_OUT, "False"), GOING, READY, ("True", COMPLETE, 0, 0), id="23.4.2 late, complete"),
        pytest.param(condition(COMPLETE), READY, READY, ("True", COMPLETE, 60, 120), id="23.4.2 it stays complete"),
        pytest.param(
            condition(COMPLETE), READY, (3, 3, 2, 2), ("True", COMPLETE, 60, 120), id="23.4.2 though a pod is lost"
        ),
        pytest.param(
            condition(COMPLETE), READY, (3, 0, 3, 3), ("True", COMPLETE, 60, 120), id="the next rollout begins"
        ),
        pytest.param(
            condition(COMPLETE), READY, (4, 1, 3, 3), ("True", UPDATED, 0, 120), id="it has begun since the last status"
        ),
        pytest.param(
            condition(COMPLETE), (4, 1, 3, 3), (4, 2, 3, 3), ("True", UPDATED, 0, 120), id="the next rollout moves"
        ),
        pytest.param(condition(UPDATED, ago_s=91), GOING, GOING, ("False", TIMED_OUT, 0, 0), id="23.4.2 timed out"),
        pytest.param(
            condition(TIMED_OUT, "False", ago_s=1), GOING, GOING, ("False", TIMED_OUT, 1, 2), id="23.4.2 still late"
        ),
        pytest.param(condition(FOUND, ago_s=91), GOING, GOING, ("False", TIMED_OUT, 0, 0), id="found, and too late"),
    ],
)
def test_23_4_2_judged(present, old, new, expected):
    """23.4.2: status, reason, and how many seconds ago the condition was updated and became what it is."""
    conditions = (AVAILABLE, present) if present else (AVAILABLE,)
    old, new = said(*old, conditions=conditions), said(*new, conditions=conditions)
    found = judge(dep(3, progress_deadline_seconds=90), old, new, "web-5d", NOW_MS)
    judged = get_condition(found, PROGRESSING)
    times = judged and ((NOW_MS - judged.last_update_ms) / S, (NOW_MS - judged.last_transition_ms) / S)
    assert (judged and times and (judged.status, judged.reason, *times)) == expected
    assert get_condition(found, "Available") == AVAILABLE


def test_23_4_2_without_a_deadline():
    """23.4.2: the condition goes."""
    status = said(*GOING, conditions=(condition(UPDATED), AVAILABLE))
    assert judge(dep(3), status, status, "", NOW_MS) == (AVAILABLE,)


@pytest.mark.parametrize(
    ("new", "replicaset", "message"),
    [
        pytest.param(READY, "web-5d", 'ReplicaSet "web-5d" has successfully progressed.', id="complete"),
        pytest.param(READY, "", 'Deployment "web" has successfully progressed.', id="without a new one"),
        pytest.param((3, 2, 1, 1), "web-5d", 'ReplicaSet "web-5d" is progressing.', id="moving"),
        pytest.param(GOING, "web-5d", 'ReplicaSet "web-5d" has timed out progressing.', id="late"),
    ],
)
def test_messages(new, replicaset, message):
    """As upstream words them."""
    conditions = (condition(UPDATED, ago_s=91),)
    old, new = said(*GOING, conditions=conditions), said(*new, conditions=conditions)
    found = judge(dep(3, progress_deadline_seconds=90), old, new, replicaset, NOW_MS)
    assert [each.message for each in found] == [message]


@pytest.mark.parametrize(
    ("paused", "present", "expected"),
    [
        pytest.param(True, None, ("Unknown", PAUSED, 0), id="paused from the start"),
        pytest.param(True, condition(UPDATED), ("Unknown", PAUSED, 0), id="paused"),
        pytest.param(True, condition(PAUSED, "Unknown"), ("Unknown", PAUSED, 60), id="still paused"),
        pytest.param(False, condition(PAUSED, "Unknown"), ("Unknown", RESUMED, 0), id="resumed: the time is new"),
        pytest.param(False, condition(RESUMED, "Unknown"), ("Unknown", RESUMED, 60), id="resumed before"),
        pytest.param(False, condition(UPDATED), ("True", UPDATED, 60), id="never paused"),
        pytest.param(True, condition(TIMED_OUT, "False"), ("False", TIMED_OUT, 60), id="late stays late"),
        pytest.param(False, None, None, id="nothing said"),
    ],
)
def test_pause(paused, present, expected):
    """Section 14.1: status, reason, and how many seconds ago it was updated."""
    deployment = dep(paused=paused, progress_deadline_seconds=90)
    found = get_condition(paused_or_resumed(deployment, (present,) if present else (), NOW_MS), PROGRESSING)
    assert (found and (found.status, found.reason, (NOW_MS - found.last_update_ms) / S)) == expected


def test_pause_without_a_deadline():
    """Nothing is said of progress at all."""
    assert paused_or_resumed(dep(paused=True), (), NOW_MS) == ()
