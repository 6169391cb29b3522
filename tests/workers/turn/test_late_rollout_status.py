"""A Deployment's turn leaves a status of counts alone to the turn that the next status of a ReplicaSet brings."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from oarlock.broker.expectations import Expectations
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Change, Verdict
from oarlock.controllers.deployment.model import DeploymentCondition, DeploymentStatus
from oarlock.controllers.deployment.plan import Plan, StatusPlan, StatusWrite
from oarlock.controllers.objects import codec
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.turn.rollout import RolloutContext, rollout
from oarlock.workers.turn.status import PUT_OFF_MS, KeptCount, LateStatus
from oarlock.workers.turn.steps import Send, TurnFailed
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.controllers.deployment.sizes_builders import dep, sized

COUNTS = DeploymentStatus(replicas=3, updated=3)
OLD = DeploymentStatus(replicas=3)
UPDATED = DeploymentStatus(replicas=3, updated=2)
NEWS = DeploymentStatus(replicas=3, conditions=(DeploymentCondition("Available", "True", "Minimum", "", 1, 1),))
ANSWERED = ["owner", "uid-web", "scale replicasets/new", "answered uid=uid-new low=2 high=4"]


def turn(
    observed: int,
    status: DeploymentStatus | None,
    late: LateStatus,
    now_ms: int,
    error: str = "",
    before: DeploymentStatus | None = None,
    again_ms: int | None = None,
) -> tuple[bool, Any]:
    """Whether the status was sent, and the end of a turn that does nothing else. The new ReplicaSet is of generation 2
    and has observed ``observed``. ``again_ms``: when the status has to be looked at again.
    """
    replicaset = sized("new", 4, generation=2, observed=observed)
    children = [Cached("7", replicaset.uid, codec.encode(replicaset))]
    deployment = dep() if before is None else msgspec.structs.replace(dep(), status=before)
    owner = Cached("5", "uid-web", codec.encode(deployment))
    claim = Claim("deployment", "default/web", "n", owner, children, Expectations.parse(ANSWERED), "", False, 0)
    controller = msgspec.structs.replace(
        CONTROLLERS["deployment"],
        decide=lambda snapshot, now_ms: Plan(error=error),
        status=lambda *given, **named: StatusPlan(None if status is None else StatusWrite(status, ""), again_ms),
    )
    outcome = TurnOutcome(claim._replace(now_ms=now_ms))
    running = rollout(
        claim._replace(now_ms=now_ms), "10", controller, RolloutContext(False, late, KeptCount()), outcome
    )
    try:
        step = next(running)
    except StopIteration as end:
        return False, end.value
    except TurnFailed as failure:
        return False, failure.finish
    assert isinstance(step, Send)
    assert [each.verb for each in step.writes] == ["status"]
    running.close()
    return True, None


@pytest.mark.parametrize(
    ("observed", "status", "error", "sent"),
    [
        pytest.param(1, COUNTS, "", False, id="counts, while a size is to be observed"),
        pytest.param(2, COUNTS, "", True, id="all are observed: nothing else brings a turn"),
        pytest.param(1, NEWS, "", True, id="the news of a condition"),
        pytest.param(1, COUNTS, "no limit", True, id="a turn that failed"),
    ],
)
def test_which_statuses_wait(observed: int, status: DeploymentStatus, error: str, sent: bool) -> None:
    assert turn(observed, status, LateStatus(), 0, error)[0] is sent


@pytest.mark.parametrize(("after", "sent"), [(OLD, True), (UPDATED, False)])
def test_that_more_pods_are_old_is_told_at_once(after: DeploymentStatus, sent: bool) -> None:
    """The template has changed: else it is no progress when they go."""
    before = msgspec.structs.replace(UPDATED, updated=1 if after is UPDATED else 3)
    assert turn(1, after, LateStatus(), 0, before=before)[0] is sent


def test_one_that_waits_is_looked_at_again_and_waits_once() -> None:
    late = LateStatus()
    waits, end = turn(1, COUNTS, late, 0)
    assert (waits, end.delay_ms) == (False, PUT_OFF_MS)
    assert turn(1, COUNTS, late, PUT_OFF_MS)[0]


@pytest.mark.parametrize(("status", "ms"), [(None, 400), (None, 60_000), (COUNTS, 400)])
def test_the_key_comes_back_for_what_time_alone_will_change(status: DeploymentStatus | None, ms: int) -> None:
    """The deadline of a rollout, for example: no event says that it has passed."""
    assert turn(1, status, LateStatus(), 0, again_ms=ms)[1].delay_ms == ms
    end = turn(1, None, LateStatus(), 0, "no limit", again_ms=ms)[1]
    assert (end.verdict, end.changes[-1]) == (Verdict.RETRY, Change.again(ms)), "no failure puts it off"
