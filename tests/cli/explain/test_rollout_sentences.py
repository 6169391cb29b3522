"""Explanations of Deployments: each circumstance of a rollout has its sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from oarlock.broker.looks.views import ExpectationsView, KeyView
from oarlock.cli.explain.rollout_sentences import RolloutSubject, plan_of
from oarlock.cli.explain.sentences import Fleet, Owner, explain
from oarlock.controllers.deployment.annotations import REVISION, ROLLBACK_TO
from oarlock.controllers.deployment.model import DeploymentCondition, DeploymentStatus
from oarlock.controllers.deployment.plan import SizeWrite, Snapshot
from oarlock.controllers.objects.model import OwnerRef
from tests.controllers.builders import NOW_MS, WEB, S
from tests.controllers.deployment.sizes_builders import dep, pod_of, sized

OURS = (OwnerRef("apps/v1", "Deployment", "web", "uid-web", True, True),)
KEY = KeyView("deployment", "default/web", "idle", None, None, None, 0, 0, "", None, None)
FLEET = Fleet("OPEN", True, 2)
AT_REST = "All is as it should be: there is nothing to do."
TO_BE_DONE = "Nothing is planned although something differs"
DONE = DeploymentStatus(4, 4, 4, 4, 0, None, 1)


def progressing(status: str, reason: str, message: str = "", ago_ms: int = 60 * S) -> DeploymentStatus:
    """A status with that condition Progressing, set so long ago."""
    at_ms = NOW_MS - ago_ms
    return msgspec.structs.replace(
        DONE, conditions=(DeploymentCondition("Progressing", status, reason, message, at_ms, at_ms),)
    )


def new(replicas: int = 4, **fields: Any) -> Any:
    """The ReplicaSet with the present template, revision 2."""
    made = sized(
        "web-new", replicas, template_digest="new", owner_refs=OURS, labels=dict(WEB), desired=4, most=5, **fields
    )
    return msgspec.structs.replace(made, annotations={**made.annotations, REVISION: "2"})


def old(replicas: int, name: str = "web-old", **fields: Any) -> Any:
    made = sized(name, replicas, template_digest=name, owner_refs=OURS, labels=dict(WEB), desired=4, most=5, **fields)
    return msgspec.structs.replace(made, annotations={**made.annotations, REVISION: "1"})


def told(*replicasets: Any, writes: dict[str, SizeWrite] | None = None, pods: Any = (), **fields: Any) -> list[str]:
    fields = {"max_surge": 1, "max_unavailable": 0, "status": DONE, **fields}
    return explain(KEY, subject(*replicasets, writes=writes, pods=pods, **fields), FLEET, "Deployment")


def subject(*replicasets: Any, writes: Any = None, pods: Any = (), **fields: Any) -> RolloutSubject:
    deployment = dep(4, **fields)
    plan = plan_of(Snapshot(deployment, replicasets, writes or {}), pods, NOW_MS)
    return RolloutSubject(deployment, "80", plan, NOW_MS, writes or {})


def test_a_rollout_that_is_complete() -> None:
    assert told(new(), old(0)) == [
        "Deployment default/web asks for 4 pods (resourceVersion 80); its status says 4 created, 4 up to date, 4 ready,"
        " 4 available.",
        "Its present template is ReplicaSet web-new (revision 2), size 4: 4 created, 4 available.",
        "1 older ReplicaSets without pods are kept.",
        "It is idle: no event asks for a turn.",
        AT_REST,
    ]


UNDER_WAY = (new(2, available=1), old(3))
BEHIND = (new(2), old(3, observed=1, generation=2))
UNANSWERED = {"uid-web-old": SizeWrite(2, 3, open=True)}


@pytest.mark.parametrize(
    ("replicasets", "fields", "sentence"),
    [
        pytest.param((), {}, "No ReplicaSet has its present template.", id="no ReplicaSet"),
        pytest.param((), {}, "A turn would create ReplicaSet web-", id="to be created"),
        pytest.param((old(4),), {}, " and scale it to 1.", id="to be created and scaled"),
        pytest.param(UNDER_WAY, {}, "ReplicaSet web-new (revision 2), size 2: 2 created, 1 available.", id="new"),
        pytest.param(
            UNDER_WAY, {}, "Pods of older templates: web-old (revision 1), size 3: 3 created, 3 available.", id="old"
        ),
        pytest.param(
            UNDER_WAY,
            {},
            "At most 5 pods may exist and at least 4 stay available: its ReplicaSets ask for 5, and 4 are available.",
            id="limits",
        ),
        pytest.param(UNDER_WAY, {}, "It waits: 1 of the 2 pods of web-new are to become available.", id="unavailable"),
        pytest.param((new(2), old(3)), {}, "A turn would scale web-old from 3 to 2.", id="next step"),
        pytest.param(BEHIND, {}, "It waits: ReplicaSet web-old is to observe its size.", id="unobserved"),
        pytest.param(
            (new(2), old(2)), {"writes": UNANSWERED}, "It waits: ReplicaSet web-old is to observe its size.", id="open"
        ),
        pytest.param((new(),), {"paused": True}, "It is paused: changes of its template wait", id="paused"),
        pytest.param(
            (old(0, pods=1),),
            {"strategy": "Recreate"},
            "It waits: the pods of ReplicaSet web-old are to go.",
            id="Recreate and pods in a status",
        ),
        pytest.param(
            (old(0),),
            {"strategy": "Recreate", "pods": (pod_of("web-old", deleting_ms=NOW_MS),)},
            "It waits: pod web-old-x of ReplicaSet web-old is to go.",
            id="Recreate and a pod",
        ),
        pytest.param(
            (new(),),
            {"max_surge": "lots"},
            "A part cannot be done: maxSurge is neither a number",
            id="unreadable limit",
        ),
        pytest.param(
            (new(),), {"selector": None}, "Nothing can be done about it: the selector is empty.", id="invalid"
        ),
        pytest.param(
            (new(),), {"deleting_ms": 1}, "It is being deleted: only its status is still written.", id="deleting"
        ),
        pytest.param(
            (),
            {"status": msgspec.structs.replace(DONE, collision_count=2)},
            "2 times the name of its new ReplicaSet was taken by another one (collisionCount).",
            id="collision",
        ),
        pytest.param(
            (new(), old(0)), {"annotations": {ROLLBACK_TO: "1"}}, "A turn would end the rollback", id="rollback"
        ),
        pytest.param(
            (new(), old(0)), {"revision_history_limit": 0}, "A turn would delete web-old.", id="beyond the history"
        ),
        pytest.param(
            (msgspec.structs.replace(new(), owner_refs=()),), {}, "A turn would adopt web-new.", id="an orphan"
        ),
        pytest.param(
            UNDER_WAY,
            {"status": progressing("False", "ProgressDeadlineExceeded"), "progress_deadline_seconds": 600},
            "no progress within its deadline, which was exceeded 1m00s ago; it goes on anyway.",
            id="deadline exceeded",
        ),
        pytest.param(
            UNDER_WAY,
            {"status": progressing("True", "ReplicaSetUpdated"), "progress_deadline_seconds": 600},
            "Without progress its deadline is exceeded in 9m00s.",
            id="deadline to come",
        ),
        pytest.param(
            (),
            {
                "status": progressing("False", "ReplicaSetCreateError", "quota exceeded."),
                "progress_deadline_seconds": 600,
            },
            "It makes no progress: ReplicaSetCreateError: quota exceeded.",
            id="not created",
        ),
        pytest.param(
            UNDER_WAY,
            {
                "status": msgspec.structs.replace(
                    DONE, conditions=(DeploymentCondition("ReplicaFailure", "True", "FailedCreate", "no room"),)
                )
            },
            "Its pods could not be made or deleted: FailedCreate: no room.",
            id="pods not created",
        ),
    ],
)
def test_each_circumstance_has_its_sentence(replicasets: Any, fields: dict[str, Any], sentence: str) -> None:
    said = told(*replicasets, **fields)
    assert any(sentence in each for each in said), said


@pytest.mark.parametrize(
    ("replicasets", "fields", "end"),
    [
        pytest.param((new(), old(0)), {}, [AT_REST], id="complete"),
        pytest.param(UNDER_WAY, {}, [], id="waits for pods: the event of one brings the next turn"),
        pytest.param(UNDER_WAY, {"paused": True}, [], id="paused half-way"),
        pytest.param((new(2), old(3)), {}, [TO_BE_DONE], id="a step is due and nobody takes it"),
    ],
)
def test_how_it_ends(replicasets: Any, fields: dict[str, Any], end: list[str]) -> None:
    said = told(*replicasets, **fields)
    assert [each for each in (AT_REST, TO_BE_DONE) if any(one.startswith(each) for one in said)] == end


def test_json_has_the_rollout() -> None:
    facts = subject(*UNDER_WAY, writes=UNANSWERED, max_surge=1, max_unavailable=0).facts["rollout"]
    assert facts["new"] == {
        **{"name": "web-new", "revision": 2, "replicas": 2, "created": 2, "available": 1, "observed": True},
        "size_write": None,
    }
    assert [each["size_write"] for each in facts["old"]] == [{"low": 2, "high": 3, "open": True}]
    assert (facts["complete"], facts["waiting_for"]) == (False, "ReplicaSet web-old is to observe its size")


def test_a_replicaset_says_who_decides_its_size() -> None:
    said = explain(KEY, Owner(new(), "80", 4, 0), FLEET)
    assert "Deployment default/web controls it and decides its size." in said


def test_changes_of_sizes_among_the_expectations() -> None:
    record = ExpectationsView(
        "deployment",
        "default/web",
        {
            "scale replicasets/web-new": "pending since_ms=500 sent_ms=500 tries=1 uid=u rv=7 low=2 high=4",
            "scale replicasets/web-old": "answered uid=v low=1 high=3",
        },
        1_000,
        1_000,
    )
    said = explain(replace(KEY, expectations=record), None, FLEET)
    assert "1 change of a size has no answer yet: web-new from 2 to 4 (sent 500ms ago)." in said
    assert "1 change of a size is done and not yet observed: web-old from 1 to 3." in said
