"""Turns over Deployments whose objects are odd, or are changed by others on their way: admission, people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Verdict
from oarlock.cluster.answer import Answer
from oarlock.controllers.deployment.model import RECREATE, Deployment
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.model import ReplicaSet
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.turn.rollout import RolloutContext, rollout
from oarlock.workers.turn.status import KeptCount, LateStatus
from oarlock.workers.turn.steps import Announce, Grant, Look, Read, Reserve, Send, Step, TurnFailed, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.controllers.builders import NOW_MS
from tests.controllers.deployment.deployment_builders import owned
from tests.controllers.deployment.sizes_builders import dep, pod_of

OTHER = b'{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"other"}]}}'


@dataclass
class Told:
    """What a turn asked for, and how it ended."""

    writes: list[Write] = field(default_factory=list)
    verdict: Verdict | None = None
    error: str = ""

    @property
    def verbs(self) -> list[str]:
        return [f"{write.verb} {write.resource}" for write in self.writes]


def claimed(deployment: Deployment, *replicasets: ReplicaSet) -> Claim:
    name, template = codec.template_apart(deployment)
    owner = Cached("5", deployment.uid, codec.encode_apart(deployment), name, template)
    children = [Cached("7", each.uid, codec.encode(each)) for each in replicasets]
    return Claim("deployment", deployment.key, "nonce", owner, children, None, "", False, 0, now_ms=NOW_MS)


def answered(code: int = 200, **metadata: Any) -> Answer:
    return Answer(code, orjson.dumps({"kind": "X", "metadata": metadata}))


def turned(
    claim: Claim, api: Callable[[Write | Read], Answer], pods: tuple[Any, ...] = (), late: LateStatus | None = None
) -> Told:
    """A whole turn. ``pods``: those that are cached, by owner."""
    told, outcome = Told(), TurnOutcome(claim)
    context = RolloutContext(True, late or LateStatus(), KeptCount())
    running = rollout(claim, "10", CONTROLLERS["deployment"], context, outcome)  # type: ignore[arg-type]

    def answer(step: Step) -> Any:
        match step:
            case Reserve():
                return Grant(step.wanted, 0)
            case Send():
                told.writes += step.writes
                return [api(write) for write in step.writes]
            case Read():
                return [api(step)]
            case Look():
                wanted = {entry.removeprefix("owner=") for entry in step.entries}
                found = [each for each in pods if each.owner_refs[0].uid in wanted]
                return [Cached("7", each.uid, codec.encode(each)) for each in found]
            case Announce():
                return None
        raise AssertionError(step)

    result: Any = None
    try:
        while True:
            result = answer(running.send(result))
    except StopIteration as end:
        told.verdict = end.value.verdict
    except TurnFailed as failure:
        told.verdict, told.error = failure.finish.verdict, str(failure)
    return told


def live(deployment: Deployment, **metadata: Any) -> Answer:
    meta = {"namespace": "default", "name": "web", "uid": deployment.uid, "resourceVersion": "5"} | metadata
    return Answer(200, orjson.dumps({"kind": "Deployment", "metadata": meta, "spec": {}}))


def test_pods_of_an_adopted_replicaset_are_waited_for() -> None:
    """Recreate: an orphan without pods of its own count still has one that is ending."""
    deployment = dep(2, strategy=RECREATE)
    orphan = owned("old", 0, 1, owner_refs=(), uid="uid-old")
    ending = pod_of("old", deleting_ms=NOW_MS)

    def api(asked: Write | Read) -> Answer:
        return live(deployment) if isinstance(asked, Read) else answered(uid="u", resourceVersion="11")

    told = turned(claimed(deployment, orphan), api, (ending,))
    assert "create replicasets" not in told.verbs, "its pod would run beside the one that is ending"


def made(deployment: Deployment, template: bytes, code: int, **spec: Any) -> Answer:
    """Our ReplicaSet as the API has it."""
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": deployment.uid, "controller": True}
    meta = {"namespace": "default", "name": "web-1", "uid": "uid-1", "resourceVersion": "11", "generation": 1}
    meta |= {"ownerReferences": [ref], "labels": {"app": "web"}}
    body = {"metadata": meta, "spec": {"replicas": 0, "template": orjson.loads(template)} | spec}
    return Answer(code, orjson.dumps(body))


TAKEN = Answer(409, orjson.dumps({"kind": "Status", "reason": "AlreadyExists", "code": 409}))


@pytest.mark.parametrize("code", [201, 409])
def test_admission_changes_the_template(code: int) -> None:
    """What is made does not have the template. No pods, no collision, no other ReplicaSet: the status says why.
    ``code``: made by this turn, or by one before.
    """
    deployment = dep(3, progress_deadline_seconds=600, max_surge=1)

    def api(asked: Write | Read) -> Answer:
        if isinstance(asked, Read) or (asked.verb == "create" and code == 201):
            return live(deployment) if asked.resource == "deployments" else made(deployment, OTHER, 201)
        return TAKEN if asked.verb == "create" else answered(uid="u", resourceVersion="12")

    told = turned(claimed(deployment), api)
    assert told.verbs == ["create replicasets", "status deployments"]
    assert "admission changed the template" in told.error
    status = orjson.loads(told.writes[-1].body)["status"]
    assert "collisionCount" not in status
    assert [each["reason"] for each in status["conditions"] if each["type"] == "Progressing"] == [
        "ReplicaSetCreateError"
    ]


def test_a_template_changed_by_hand_is_a_collision() -> None:
    """The edit was a change of the spec, and gave it another generation."""
    deployment = dep(3, max_surge=1)

    def api(asked: Write | Read) -> Answer:
        if isinstance(asked, Read):
            if asked.resource == "deployments":
                return live(deployment)
            body = orjson.loads(made(deployment, OTHER, 200).body)
            body["metadata"]["generation"] = 2
            return Answer(200, orjson.dumps(body))
        return TAKEN if asked.verb == "create" else answered(uid="u", resourceVersion="12")

    told = turned(claimed(deployment), api)
    assert told.verbs == ["create replicasets", "status deployments"]
    assert orjson.loads(told.writes[-1].body)["status"] == {"collisionCount": 1}


@pytest.mark.parametrize(
    "old",
    [owned("new", 1, 1, desired=3), owned("new", 3, 0, desired=3, notes={"note": "x"})],
    ids=["of a size", "of an annotation"],
)
def test_admission_undoes_a_change(old: ReplicaSet) -> None:
    """The patch succeeds and changes nothing, so no event follows: the turn is tried again, with its status written."""
    deployment = dep(3, max_surge=1, annotations={"note": "y"} if old.replicas == 3 else {})

    def api(asked: Write | Read) -> Answer:
        assert isinstance(asked, Write)
        return answered(uid=old.uid, resourceVersion="7" if asked.resource == "replicasets" else "12")

    told = turned(claimed(deployment, old), api)
    assert told.verbs == ["patch replicasets", "status deployments"]
    assert told.verdict is Verdict.RETRY
    assert "left as it was" in told.error
