"""Every explanation about Deployments covers the difference it is about, and nothing next to it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.compare import differences
from tests.differential.explain import explain
from tests.differential.moment import BUILT, Moment
from tests.differential.recorded import event, owner, replicaset, snapshot
from tests.differential.snapshot import Snapshot
from tests.differential.step import Step
from tests.realserver.versions import Version

REVISIONS = {"a": 1}


def of(what: str, **about: Any) -> Step:
    return Step(what, {"kind": "Deployment", "name": "web", **about})


def web(hashes: str, revisions: dict[str, int], *told: tuple[str, int]) -> Snapshot:
    """A Deployment with these ReplicaSets. `told`: reason and count, about the first of them."""
    made = [replicaset(f"web-{each}", f"nginx:{each}", revision=revisions[each]) for each in hashes]
    for number, each in enumerate(made):
        each["metadata"]["creationTimestamp"] = f"2026-01-02T03:04:{number:02}Z"
    events = [event(f"web-{hashes[0]}", reason, count) for reason, count in told]
    sets = [("ReplicaSet", each) for each in made]
    return snapshot(("Deployment", owner("Deployment", "web", {})), *sets, events=tuple(events))


def explained(
    upstream: Snapshot, fleet: Snapshot, steps: list[Step], before: Snapshot, version: Version = BUILT
) -> set[str]:
    moment = Moment(steps, upstream, fleet, before, before, version)
    return {explain(each, moment) for each in differences(upstream, fleet)}


def cut(limit: int) -> list[Step]:
    return [of("create_owner"), of("change_spec", spec={"revisionHistoryLimit": limit})]


LAST = {"a": 1, "b": 3, "c": 2, "d": 4}
"""The second one's template came back, and then another."""


@pytest.mark.parametrize(
    ("kept", "steps", "expected"),
    [
        (("cd", "bd"), cut(1), {"cleaned-by-revision"}),
        (("bd", "cd"), cut(1), {""}),
        (("cd", "bcd"), cut(1), {""}),
        (("cd", "ad"), cut(1), {""}),
        (("cd", "bd"), cut(2), {""}),
        (("cd", "bd"), [of("create_owner"), of("change_spec", spec={"replicas": 1})], {""}),
        (("cd", "bd"), [*cut(1), of("scale_replicaset", back=0)], {""}),
    ],
    ids=["by age", "the other way round", "one too many", "neither", "another limit", "a size", "later"],
)
def test_what_is_cleaned_up(kept: tuple[str, str], steps: list[Step], expected: set[str]) -> None:
    upstream, fleet = (web(each, LAST) for each in kept)
    assert explained(upstream, fleet, steps, web("abcd", LAST)) == expected
    assert explained(upstream, fleet, steps, web("abcd", LAST), Version(1, 21, 0)) == {""}


@pytest.mark.parametrize(
    ("kept", "limit", "expected"),
    [
        (("cde", "bde"), 2, {"cleaned-by-revision"}),
        (("bde", "cde"), 2, {""}),
        (("cde", "ade"), 2, {""}),
        (("cde", "bde"), 3, {""}),
    ],
    ids=["by age", "the other way round", "neither", "another limit"],
)
def test_what_a_new_template_has_cleaned_up(kept: tuple[str, str], limit: int, expected: set[str]) -> None:
    revisions = {**LAST, "e": 5}
    upstream, fleet = (web(each, revisions) for each in kept)
    steps = [*cut(limit), of("change_template", image="i")]
    assert explained(upstream, fleet, steps, web("bcd", LAST)) == expected


def test_what_a_pause_has_cleaned_up() -> None:
    """The template was changed meanwhile. The oldest has pods, and stays."""
    made = [replicaset(f"web-{each}", "i", revision=number) for number, each in enumerate("ab", 1)]
    made[0]["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "3"
    made[0]["spec"]["replicas"], made[1]["spec"]["replicas"] = 3, 0
    for number, each in enumerate(made):
        each["metadata"]["creationTimestamp"] = f"2026-01-02T03:04:{number:02}Z"
    web = ("Deployment", owner("Deployment", "web", {}))
    upstream, fleet = (snapshot(web, *(("ReplicaSet", each) for each in left)) for left in (made, made[:1]))
    steps = [*cut(1), of("change_spec", spec={"paused": True}), of("change_template", image="i")]
    assert explained(upstream, fleet, steps, upstream) == {"cleaned-by-revision"}
    assert explained(fleet, upstream, steps, upstream) == {""}
    assert explained(upstream, fleet, [*cut(1), steps[-1]], upstream) == {""}


HAND = [of("create_owner"), of("scale_replicaset", back=0, replicas=2)]
CREATED, DELETED, REFUSED = "SuccessfulCreate", "SuccessfulDelete", "FailedCreate"


@pytest.mark.parametrize(
    ("told", "steps", "expected"),
    [
        (((CREATED, 4), (DELETED, 2)), HAND, {"scaled-by-hand"}),
        (((CREATED, 4), (DELETED, 1)), HAND, {""}),
        (((CREATED, 4),), HAND, {""}),
        (((CREATED, 4), (DELETED, 2)), [], {""}),
        (((CREATED, 4), (DELETED, 2)), [*HAND, of("create_owner")], {""}),
        (((CREATED, 2), (REFUSED, 1)), HAND, {""}),
    ],
    ids=["both", "not as many", "creates alone", "nobody did", "another Deployment", "another event"],
)
def test_a_size_that_is_put_back(told: tuple[tuple[str, int], ...], steps: list[Step], expected: set[str]) -> None:
    upstream, fleet = web("a", REVISIONS, (CREATED, 2)), web("a", REVISIONS, *told)
    assert explained(upstream, fleet, steps, upstream) == expected
    assert explained(fleet, upstream, steps, upstream) == expected


NOT_FOUND, NO_REPLICASET = "DeploymentRollbackRevisionNotFound", "ReplicaSetCreateError"


def rolled_back(reason: str, *messages: str) -> Snapshot:
    made = ("Deployment", owner("Deployment", "web", {}))
    return snapshot(made, events=tuple(event("web", reason, message=each) for each in messages))


@pytest.mark.parametrize(
    ("reason", "upstream", "fleet", "expected"),
    [
        (NOT_FOUND, ("m", "m"), ("m",), {"rollback-told-again"}),
        (NOT_FOUND, ("m",), ("m", "m"), {""}),
        (NOT_FOUND, ("m", "n"), ("m",), {""}),
        (NOT_FOUND, ("m",), (), {""}),
        (NO_REPLICASET, ("m", "m"), ("m",), {""}),
    ],
    ids=["again", "by the fleet", "another", "not at all", "of something else"],
)
def test_a_rollback_that_is_told_again(
    reason: str, upstream: tuple[str, ...], fleet: tuple[str, ...], expected: set[str]
) -> None:
    sides = rolled_back(reason, *upstream), rolled_back(reason, *fleet)
    assert explained(*sides, [of("roll_back", revision=0)], sides[0]) == expected


RECREATE = [of("create_owner", spec={"strategy": {"type": "Recreate"}}), of("roll_back", revision=0)]
SCALED_UP = "Scaled up replica set web-a to 2"


@pytest.mark.parametrize(
    ("told", "steps", "expected"),
    [
        (((CREATED, 4), (DELETED, 2)), RECREATE, {"recreate-rolled-back"}),
        (((CREATED, 4), (DELETED, 2)), RECREATE[:1], {""}),
        (((CREATED, 4), (DELETED, 2)), [of("create_owner"), RECREATE[1]], {""}),
        (((CREATED, 4), (DELETED, 1)), RECREATE, {""}),
        (((CREATED, 2), (REFUSED, 1)), RECREATE, {""}),
    ],
    ids=["both", "no rollback", "it rolls", "not as many", "another event"],
)
def test_pods_of_a_template_that_is_rolled_back(
    told: tuple[tuple[str, int], ...], steps: list[Step], expected: set[str]
) -> None:
    upstream, fleet = web("a", REVISIONS, *told), web("a", REVISIONS, (CREATED, 2))
    assert explained(upstream, fleet, steps, upstream) == expected
    assert explained(fleet, upstream, steps, upstream) == {""}


def test_the_steps_that_are_told_of_them() -> None:
    sides = rolled_back("ScalingReplicaSet", SCALED_UP), rolled_back("ScalingReplicaSet")
    assert explained(*sides, RECREATE, sides[0]) == {"recreate-rolled-back"}
    assert explained(*reversed(sides), RECREATE, sides[0]) == {""}


def done(named: str, history: str = "1", reason: str = "NewReplicaSetAvailable", status: str = "True") -> Snapshot:
    """Of two ReplicaSets, b was complete, and a is the present one again."""
    said = {"type": "Progressing", "status": "True", "reason": reason}
    said["message"] = f'ReplicaSet "web-{named}" has successfully progressed.'
    available = {"type": "Available", "status": status, "reason": "r", "message": "m"}
    sets = [replicaset(f"web-{each}", f"nginx:{each}", revision=number) for each, number in (("a", 3), ("b", 2))]
    if history:
        sets[0]["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] = history
    deployment = owner("Deployment", "web", {"conditions": [said, available]})
    return snapshot(("Deployment", deployment), *(("ReplicaSet", each) for each in sets))


@pytest.mark.parametrize(
    ("upstream", "fleet", "expected"),
    [
        (done("a"), done("b"), {"who-is-done"}),
        (done("b"), done("a"), {"who-is-done"}),
        (done("a", history=""), done("b", history=""), {""}),
        (done("a"), done("b", reason="ReplicaSetUpdated"), {""}),
        (done("a"), done("b", status="False"), {""}),
    ],
    ids=["the fleet names the former", "upstream does", "a new template", "not done", "another condition"],
)
def test_whom_a_condition_names(upstream: Snapshot, fleet: Snapshot, expected: set[str]) -> None:
    assert explained(upstream, fleet, [of("create_owner")], upstream) == expected


def test_whom_a_condition_names_under_recreate() -> None:
    upstream, fleet = done("a", history=""), done("b", history="")
    assert explained(upstream, fleet, RECREATE[:1], upstream) == {"who-is-done"}


def moving(reason: str, message: str, available: str = "True", status: str = "True") -> Snapshot:
    """A Deployment whose template has changed from b to a."""
    said = {"type": "Progressing", "status": status, "reason": reason, "message": message}
    conditions = [said, {"type": "Available", "status": available, "reason": "r", "message": "m"}]
    return snapshot(("Deployment", owner("Deployment", "web", {"conditions": conditions})))


UPDATED = ("ReplicaSetUpdated", 'ReplicaSet "web-a" is progressing.')
LATE = ("ProgressDeadlineExceeded", 'ReplicaSet "web-a" has timed out progressing.')
CREATED_A = ("NewReplicaSetCreated", 'Created new replica set "web-a"')


@pytest.mark.parametrize(
    ("upstream", "fleet", "expected"),
    [
        (moving(*CREATED_A), moving(*UPDATED), {"first-pods-unseen"}),
        (
            moving("NewReplicaSetAvailable", 'ReplicaSet "web-b" has successfully progressed.'),
            moving(*UPDATED),
            {"first-pods-unseen"},
        ),
        (moving("NewReplicaSetAvailable", 'ReplicaSet "web-a" has successfully progressed.'), moving(*UPDATED), {""}),
        (moving("NewReplicaSetCreated", 'Created new replica set "web-b"'), moving(*UPDATED), {""}),
        (
            moving("NewReplicaSetAvailable", 'ReplicaSet "web-b" has successfully progressed.'),
            moving(*LATE, status="False"),
            {"first-pods-unseen"},
        ),
        (moving(*CREATED_A), moving(*LATE, status="False"), {""}),
        (moving("ProgressDeadlineExceeded", 'ReplicaSet "web-a" is progressing.'), moving(*UPDATED), {""}),
        (moving(*UPDATED), moving(*CREATED_A), {""}),
        (moving(*CREATED_A), moving(*UPDATED, available="False"), {""}),
    ],
    ids=[
        "created",
        "done before",
        "it is done",
        "another one",
        "done, late",
        "created, late",
        "late",
        "the other way round",
        "something else",
    ],
)
def test_first_pods_that_no_status_was_without(upstream: Snapshot, fleet: Snapshot, expected: set[str]) -> None:
    assert explained(upstream, fleet, [], upstream) == expected


ROLLED = [of("create_owner", spec={"replicas": 2}), of("change_template", image="nginx:a")]


@pytest.mark.parametrize(
    ("told", "steps", "expected"),
    [
        (((CREATED, 4), (DELETED, 2)), ROLLED, {"overtaken-size"}),
        (((CREATED, 4), (DELETED, 1)), ROLLED, {""}),
        (((CREATED, 4),), ROLLED, {""}),
        (((CREATED, 4), (DELETED, 2)), ROLLED[:1], {""}),
        (((CREATED, 5), (DELETED, 3)), ROLLED, {""}),
        (((CREATED, 2), (REFUSED, 1)), ROLLED, {""}),
    ],
    ids=["both", "not as many", "creates alone", "never rolled", "more than there are", "another event"],
)
def test_a_size_that_is_overtaken(told: tuple[tuple[str, int], ...], steps: list[Step], expected: set[str]) -> None:
    upstream, fleet = web("a", REVISIONS, (CREATED, 2)), web("a", REVISIONS, *told)
    assert explained(upstream, fleet, steps, upstream) == expected
    assert explained(fleet, upstream, steps, upstream) == expected
