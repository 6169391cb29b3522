"""When a turn over a Deployment writes the status: what only it knows is never put off."""

from __future__ import annotations

from typing import Any

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.cluster.answer import Answer
from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.deployment.progress import COMPLETE
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.model import ReplicaSet
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.turn.rollout import RolloutContext, rollout
from oarlock.workers.turn.status import KeptCount, LateStatus
from oarlock.workers.turn.steps import Send, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.controllers.builders import NOW_MS
from tests.controllers.deployment.deployment_builders import condition, owned, said
from tests.controllers.deployment.sizes_builders import dep

CREATED, PATCHED = (Answer(code, b'{"metadata": {"uid": "u", "resourceVersion": "20"}}') for code in (201, 200))


def written(deployment: Deployment, *replicasets: ReplicaSet) -> list[Write]:
    """What one turn sends, with every write answered well."""
    blob, (_, template) = codec.encode_apart(deployment), codec.template_apart(deployment)
    owner = Cached("5", deployment.uid, blob, apart=template)
    children = [Cached("7", each.uid, codec.encode(each)) for each in replicasets]
    claim = Claim("deployment", "default/web", "nonce", owner, children, None, "", False, 0, now_ms=NOW_MS)
    context = RolloutContext(False, LateStatus(), KeptCount())
    running = rollout(claim, "10", CONTROLLERS["deployment"], context, TurnOutcome(claim))  # type: ignore[arg-type]
    sent: list[Write] = []
    answers: Any = None
    while True:
        try:
            step = running.send(answers)
        except StopIteration:
            return sent
        assert isinstance(step, Send), step
        sent += step.writes
        answers = [CREATED if each.verb == "create" else PATCHED for each in step.writes]


def test_that_a_rollout_without_pods_is_done_is_said_of_the_replicaset_it_made() -> None:
    """It was said of the old one, with the same reason. The next turn finds the new one, and nothing to say."""
    conditions = (condition("MinimumReplicasAvailable", type="Available"), condition(COMPLETE))
    deployment = dep(0, status=said(0, 0, 0, 0, conditions=conditions), progress_deadline_seconds=600)
    create, status = written(deployment, owned("old", revision=1))
    assert (create.verb, status.verb) == ("create", "status")
    assert f'ReplicaSet \\"{create.name}\\" has successfully progressed.'.encode() in status.body


def test_that_one_without_pods_was_made_waits_for_the_turn_that_its_event_brings() -> None:
    deployment = dep(0, status=said(0, 0, 0, 0, conditions=(condition("MinimumReplicasAvailable", type="Available"),)))
    assert [each.verb for each in written(deployment, owned("old", revision=1))] == ["create"]
