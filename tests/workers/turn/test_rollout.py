"""A Deployment's turn, driven by hand, one step at a time."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
import pytest

from oarlock.broker.expectations import Expectations
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.cluster.answer import Answer
from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.model import ReplicaSet
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.turn.rollout import RolloutContext, rollout
from oarlock.workers.turn.status import KeptCount, LateStatus
from oarlock.workers.turn.steps import Announce, Grant, Listed, ListLive, Read, Reserve, Send, Step, TurnFailed
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.controllers.builders import TEMPLATE, WEB
from tests.controllers.deployment.sizes_builders import sized
from tests.simulation.traffic import refusal

OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-web", "controller": True}
STRANGER = OWNER | {"uid": "uid-other"}
LIVE_TEMPLATE = orjson.loads(TEMPLATE)
OTHER_TEMPLATE = LIVE_TEMPLATE | {"spec": {"containers": [{"name": "c", "image": "another"}]}}
SPEC = {"selector": {"matchLabels": WEB}, "template": LIVE_TEMPLATE, "replicas": 3}


def raw(name: str, uid: str, rv: str, **meta: Any) -> dict[str, Any]:
    facts = {"namespace": "default", "name": name, "uid": uid, "resourceVersion": rv, "generation": 1}
    return {"metadata": facts | meta, "spec": SPEC, "status": {}}


DEPLOYMENT: Deployment = CONTROLLERS["deployment"].owners.from_json(orjson.dumps(raw("web", "uid-web", "4")))[1]


def claimed(*replicasets: ReplicaSet, owner: Deployment | None = DEPLOYMENT, **fields: Any) -> Claim:
    children = [Cached("5", each.uid, codec.encode(each)) for each in replicasets]
    cached = None if owner is None else Cached("4", owner.uid, codec.encode(owner))
    claim = Claim("deployment", "default/web", "nonce", cached, children, None, "", False, 0, now_ms=1_000_000)
    return claim._replace(**fields)


class Played:
    """A turn up to where it stands. ``finish``: once it is over, with ``error`` where it failed."""

    def __init__(self, claim: Claim) -> None:
        self.outcome = TurnOutcome(claim)
        context = RolloutContext(False, LateStatus(), KeptCount())
        self._steps = rollout(claim, "5", CONTROLLERS["deployment"], context, self.outcome)  # type: ignore[arg-type]
        self.finish: Finish | None = None
        self.error = ""

    def step(self, result: Any = None) -> Step | None:
        try:
            return self._steps.send(result)
        except StopIteration as end:
            self.finish = end.value
        except TurnFailed as failure:
            self.finish, self.error = failure.finish, str(failure)
        return None

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        return [(each.op, each.name, each.value) for each in (self.finish.changes if self.finish else ())]


def answer(doc: dict[str, Any], code: int = 200) -> Answer:
    return Answer(code, orjson.dumps(doc))


def sent(step: Step | None) -> tuple[str, str, dict[str, Any]]:
    assert isinstance(step, Send)
    (write,) = step.writes
    return write.verb, write.target, orjson.loads(write.body)


def test_a_replicaset_comes_without_pods_and_is_sized_under_the_version_it_got() -> None:
    turn = Played(claimed())
    verb, target, body = sent(turn.step())
    assert (verb, body["spec"]["replicas"]) == ("create", 0)
    name = target.removeprefix("replicasets/")
    assert turn.step(
        [answer(raw(name, "uid-rs", "6", ownerReferences=[OWNER]) | {"spec": SPEC | {"replicas": 0}}, 201)]
    ) == (Reserve(1))
    announced = turn.step(Grant(1, 0))
    assert isinstance(announced, Announce)
    assert [(each.field, each.detail) for each in announced.entries] == [
        (f"scale {target}", "uid=uid-rs rv=6 low=0 high=3")
    ]
    verb, _, body = sent(turn.step([]))
    assert (verb, body["spec"]) == ("patch", {"replicas": 3})
    assert body["metadata"]["resourceVersion"] == "6"
    verb, where, _ = sent(turn.step([answer(raw(name, "uid-rs", "7"))]))
    assert (verb, where) == ("status", "deployments/web"), "that it was created is news"
    turn.step([answer(raw("web", "uid-web", "8"))])
    assert turn.finish is not None
    assert ("set", f"scale {target}", "answered uid=uid-rs low=0 high=3") in turn.changes
    assert ("need", "replicasets", "7") in turn.changes


def test_one_without_pods_has_to_be_read_before_the_next_turn() -> None:
    turn = Played(claimed(owner=msgspec.structs.replace(DEPLOYMENT, replicas=0)))
    verb, target, _ = sent(turn.step())
    assert verb == "create"
    made = raw(target.removeprefix("replicasets/"), "uid-rs", "6", ownerReferences=[OWNER])
    step = turn.step([answer(made | {"spec": SPEC | {"replicas": 0}}, 201)])
    if step is not None:
        assert sent(step)[0] == "status"
        turn.step([answer(raw("web", "uid-web", "8"))])
    assert ("need", "replicasets", "6") in turn.changes


@pytest.mark.parametrize(
    ("owner", "template", "is_ours"),
    [(OWNER, LIVE_TEMPLATE, True), (OWNER, OTHER_TEMPLATE, False), (STRANGER, LIVE_TEMPLATE, False)],
    ids=["ours", "of another template", "another's"],
)
def test_a_name_that_is_taken(owner: dict[str, Any], template: Any, is_ours: bool) -> None:
    turn = Played(claimed())
    _, target, _ = sent(turn.step())
    name = target.removeprefix("replicasets/")
    assert turn.step([refusal(409, "AlreadyExists")]) == Read("replicasets", "default", (name,))
    found = raw(name, "uid-rs", "9", ownerReferences=[owner])
    step = turn.step([answer(found | {"spec": SPEC | {"template": template}})])
    if is_ours:
        while turn.finish is None:  # only the status may follow
            assert sent(step)[:2] == ("status", "deployments/web")
            step = turn.step([answer(raw("web", "uid-web", "10"))])
        assert ("need", "replicasets", "9") in turn.changes
        return
    assert step == Read("deployments", "default", ("web",))
    counted = raw("web", "uid-web", "8") | {"status": {"collisionCount": 2}}
    verb, where, body = sent(turn.step([answer(counted)]))
    assert (verb, where, body["status"]) == ("status", "deployments/web", {"collisionCount": 3})
    assert body["metadata"]["resourceVersion"] == "8", "whoever counts at the same time is refused"
    turn.step([answer(raw("web", "uid-web", "10"))])
    assert "the collision count is 3 now" in turn.error
    assert ("need", "deployments", "10") in turn.changes


@pytest.mark.parametrize("refused", ["the create", "the count of a collision", "the status"])
def test_the_key_waits_for_as_long_as_the_server_asks(refused: str) -> None:
    busy = Answer(429, b"too many requests", retry_after_s=7.0)
    turn = Played(
        claimed() if refused != "the status" else claimed(owner=msgspec.structs.replace(DEPLOYMENT, paused=True))
    )
    step = turn.step()
    if refused == "the count of a collision":
        turn.step([refusal(409, "AlreadyExists")])
        turn.step([answer(raw("web-x", "uid-rs", "9", ownerReferences=[STRANGER]))])
        step = turn.step([answer(raw("web", "uid-web", "8"))])
    assert sent(step)[0] == ("create" if refused == "the create" else "status")
    step = turn.step([busy])
    if step is not None:
        assert sent(step)[0] == "status", "that it failed is news"
        turn.step([answer(raw("web", "uid-web", "10"))])
    assert turn.finish is not None
    assert (turn.finish.verdict, turn.finish.delay_ms) == (Verdict.RETRY, 7_000)
    assert [each.reason for each in turn.outcome.events] == ["ReplicaSetCreateError"] * (refused == "the create")


@pytest.mark.parametrize(
    ("live", "adopts"),
    [
        (answer(raw("web", "uid-web", "4")), True),
        (answer(raw("web", "uid-web", "4", deletionTimestamp="2026-01-01T00:00:00Z")), False),
        (answer(raw("web", "uid-new", "9")), False),
        (refusal(500, "InternalError"), False),
    ],
    ids=["alive", "being deleted", "another of its name", "nothing learned"],
)
def test_before_an_adoption_the_deployment_is_read_live(live: Answer, adopts: bool) -> None:
    orphan = sized("a", 1, labels=dict(WEB))
    turn = Played(claimed(orphan))
    assert turn.step() == Read("deployments", "default", ("web",))
    step = turn.step([live])
    if adopts:
        verb, target, body = sent(step)
        assert (verb, target, body["metadata"]["uid"]) == ("patch", "replicasets/a", "uid-a")
    else:
        assert step is None
        assert "can't adopt ReplicaSet default/a" in turn.error


@pytest.mark.parametrize(
    ("fields", "verdict", "again_ms"),
    [
        ({"min_rv": "replicasets=9"}, Verdict.OK, None),
        ({"expectations": Expectations.parse(["owner", "uid-before"])}, Verdict.GONE, 0),
        ({"owner": None}, Verdict.GONE, None),
    ],
    ids=["the cache lacks a write of ours", "expectations of a predecessor", "gone"],
)
def test_turns_that_do_nothing(fields: dict[str, Any], verdict: Verdict, again_ms: int | None) -> None:
    turn = Played(claimed()._replace(**fields))
    assert turn.step() is None
    assert turn.finish is not None
    assert (turn.finish.verdict, turn.finish.delay_ms, turn.error) == (verdict, again_ms, "")


def test_after_a_loss_of_expectations_it_is_decided_on_a_live_list() -> None:
    turn = Played(claimed(unsettled=True))
    assert turn.step() == ListLive("replicasets", "default")
    mine = raw("web-x", "uid-rs", "6", ownerReferences=[OWNER], labels=dict(WEB))
    step = turn.step(Listed("9", [orjson.dumps(mine)]))
    assert not (isinstance(step, Send) and step.writes[0].verb == "create"), "the one with its template is there"
    while step is not None:
        step = turn.step(Grant(9, 0) if isinstance(step, Reserve) else _landed(step))
    assert ("settled", "", "") in turn.changes
    assert ("need", "replicasets", "9") in turn.changes, "what the list showed must not be forgotten"


def _landed(step: Step) -> list[Answer]:
    return [answer(raw("x", "u", "10"))] if isinstance(step, Send) else []


def test_limits_that_cannot_be_read_are_told() -> None:
    """Nothing is created; the status is written, and the turn is tried again."""
    turn = Played(claimed(owner=msgspec.structs.replace(DEPLOYMENT, max_surge="a lot")))
    step = turn.step()
    while step is not None:
        assert sent(step)[0] == "status"
        step = turn.step([answer(raw("web", "uid-web", "10"))])
    assert "maxSurge" in turn.error
