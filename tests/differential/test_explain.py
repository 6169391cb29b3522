"""Every explanation covers the difference it is about, and nothing next to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests import ROOT
from tests.differential.compare import Difference, differences
from tests.differential.explain import EXPLANATIONS, explain
from tests.differential.manifests import COST
from tests.differential.moment import BUILT, Moment
from tests.differential.recorded import event, owner, pod, reference, revision, snapshot
from tests.differential.snapshot import MARK, Snapshot
from tests.differential.step import Step
from tests.realserver.versions import Version

Obj = dict[str, Any]
DOCUMENT = ROOT / "docs" / "differences.md"
DS, RS = reference("DaemonSet", "agent"), reference("ReplicaSet", "web")


def of(kind: str, name: str, what: str, **about: Any) -> Step:
    return Step(what, {"kind": kind, "name": name, **about})


def daemon(name: str, node: str, digest: str = "h1", generation: str = "1", **about: Any) -> tuple[str, Obj]:
    labels = {"controller-revision-hash": digest, "pod-template-generation": generation}
    return "Pod", pod(name, DS, labels=labels, node=node, **about)


def agent(*parts: tuple[str, Obj], told: Sequence[tuple[str, int]] = (), repeated: int = 0, **status: int) -> Snapshot:
    """A DaemonSet of revision h1. `told`: reason and count; `repeated`: of deletes, told with a message used before."""
    events = [
        event("agent", reason, 1, message=f"{reason} {number}") for reason, count in told for number in range(count)
    ]
    events += [event("agent", "SuccessfulDelete", message="SuccessfulDelete 0") for _ in range(repeated)]
    history = ("ControllerRevision", revision("agent-h1", "agent", 1, "h1"))
    return snapshot(("DaemonSet", owner("DaemonSet", "agent", status)), history, *parts, events=tuple(events))


def unexplained(
    upstream: Snapshot, fleet: Snapshot, steps: Sequence[Step], before: Snapshot | None = None
) -> list[str]:
    moment = Moment(steps, upstream, fleet, before or upstream, before or fleet)
    found = differences(upstream, fleet)
    assert found, "a case of an explanation has a difference"
    return [str(each) for each in found if not explain(each, moment)]


def explained(
    upstream: Snapshot,
    fleet: Snapshot,
    steps: Sequence[Step],
    before: Snapshot | None = None,
    fleet_before: Snapshot | None = None,
    version: Version = BUILT,
) -> set[str]:
    moment = Moment(steps, upstream, fleet, before or upstream, fleet_before or before or fleet, version)
    return {explain(each, moment) for each in differences(upstream, fleet)}


# -- pods of a ReplicaSet, scaled down -----------------------------------------------------------------------


def web(*marks: str, uids: str = "abc") -> Snapshot:
    """`uids`: the names of the pods marked a, b and c end so, and so do their UIDs."""
    named = dict(zip("abc", uids, strict=True))
    pods = [("Pod", pod(f"web-{named[mark]}", RS, annotations={MARK: mark}, labels={})) for mark in marks]
    return snapshot(("ReplicaSet", owner("ReplicaSet", "web", {})), *pods)


def scaled(costs: Sequence[int], ages_s: Sequence[int], restarts: Sequence[int]) -> list[Step]:
    """Three pods to one."""
    marked = [{MARK: "abc"[number]} | ({COST: str(costs[number])} if costs else {}) for number in range(3)]
    return [
        of("ReplicaSet", "web", "annotate_pods", annotations=marked),
        of("ReplicaSet", "web", "rank_pods", ages_s=list(ages_s), restarts=list(restarts)),
        of("ReplicaSet", "web", "change_spec", spec={"replicas": 1}),
    ]


V1_22, V1_33, V1_36 = Version(1, 22, 0), Version(1, 33, 0), Version(1, 36, 2)
COSTS = scaled((5, 9, 1), (3600,) * 3, (1, 2, 3))  # upstream keeps a, the fleet b
NEAR = scaled((), (20_000, 30_000, 25_000), (0, 0, 0))  # upstream keeps b, the fleet c: its UID is the last


@pytest.mark.parametrize(
    ("steps", "kept", "expected"),
    [
        (COSTS, ("a", "b"), {"deletion-cost"}),
        (COSTS, ("a", "c"), {""}),
        (COSTS, ("c", "b"), {""}),
        (COSTS, ("b", "a"), {""}),
        (COSTS[:2], ("a", "b"), {""}),
        (NEAR, ("b", "c"), {"logarithmic-age"}),
        (NEAR, ("b", "a"), {""}),
        (NEAR, ("a", "c"), {""}),
        (scaled((), (20_000, 80_000, 25_000), (0, 0, 0)), ("b", "c"), {""}),
    ],
)
def test_who_is_kept(steps: Sequence[Step], kept: tuple[str, str], expected: set[str]) -> None:
    assert explained(web(kept[0]), web(kept[1]), steps, web("a", "b", "c")) == expected


@pytest.mark.parametrize(
    ("steps", "kept", "expected"),
    [
        (NEAR, ("a", "c"), {"uid-decides"}),
        (NEAR, ("b", "c"), {""}),
        (NEAR, ("a", "b"), {""}),
        (NEAR, ("c", "a"), {""}),
        (COSTS, ("a", "b"), {""}),
        (scaled((), (20_000, 80_000, 25_000), (0, 0, 0)), ("a", "c"), {""}),
    ],
)
@pytest.mark.parametrize("version", [V1_22, V1_36])
def test_who_is_kept_where_the_uid_decides(
    steps: Sequence[Step], kept: tuple[str, str], expected: set[str], version: Version
) -> None:
    """Upstream's UIDs come in the order b, c, a; the fleet's in that of the marks."""
    before = web("a", "b", "c", uids="zxy"), web("a", "b", "c")
    assert explained(web(kept[0], uids="zxy"), web(kept[1]), steps, *before, version) == expected


# -- daemon pods ---------------------------------------------------------------------------------------------

HELD = daemon("held", "n1", phase="Succeeded", ready=False, deleting=True, finalizers=["f"])
HELD_STEPS = [of("DaemonSet", "agent", "create_owner"), of("DaemonSet", "agent", "hold_pod", index=0)]


def test_a_held_pod_has_a_successor() -> None:
    upstream = agent(HELD, numberReady=0, numberUnavailable=1, told=[("SuccessfulCreate", 1)])
    fleet = agent(HELD, daemon("new", "n1"), numberReady=1, told=[("SuccessfulCreate", 2)])
    assert explained(upstream, fleet, HELD_STEPS) == {"ended-and-held"}
    assert unexplained(fleet, upstream, HELD_STEPS)


@pytest.mark.parametrize(
    "fleet",
    [
        agent(HELD, daemon("new", "n2"), numberReady=1),
        agent(HELD, daemon("new", "n1"), daemon("more", "n1"), numberReady=1),
        agent(HELD, daemon("new", "n1"), numberReady=2),
        agent(HELD, daemon("new", "n1"), numberReady=1, numberMisscheduled=1),
        agent(HELD, daemon("new", "n1", ready=False, phase="Pending")),
        agent(HELD, daemon("new", "n1"), numberReady=1, told=[("SuccessfulDelete", 1)]),
    ],
    ids=["elsewhere", "two", "another number", "misscheduled", "pending", "an event too many"],
)
def test_a_held_pod_explains_no_more(fleet: Snapshot) -> None:
    assert unexplained(agent(HELD), fleet, HELD_STEPS)


TAINT = Step("taint_node", {"name": "d0", "key": "k", "effect": "NoExecute"})
ENDED = daemon("ended", "n1", phase="Succeeded", ready=False)
ENDING = [of("DaemonSet", "agent", "create_owner"), of("DaemonSet", "agent", "end_pod", index=0, phase="Succeeded")]
TOLD = [("SuccessfulCreate", 2), ("SuccessfulDelete", 1), ("SucceededDaemonPod", 1)]


def test_a_daemon_pod_that_succeeded_is_replaced() -> None:
    upstream = agent(ENDED, told=[("SuccessfulCreate", 1)])
    fleet = agent(daemon("new", "n1"), numberReady=1, told=TOLD)
    assert explained(upstream, fleet, ENDING) == {"succeeded-daemon-pod"}
    assert unexplained(upstream, fleet, ENDING[:1])
    assert unexplained(fleet, upstream, ENDING)
    assert unexplained(upstream, agent(numberReady=1, told=TOLD), ENDING)
    assert unexplained(upstream, agent(daemon("new", "n1"), numberReady=1, told=[*TOLD, ("FailedDelete", 1)]), ENDING)
    later = agent(daemon("new", "n1"), numberReady=1, told=[("SuccessfulCreate", 2)])
    assert explained(later, fleet, ENDING) == {"succeeded-daemon-pod"}


@pytest.mark.parametrize(
    ("upstream", "fleet", "before", "expected"),
    [
        (0, 1, [], "succeeded-daemon-pod"),
        (0, 2, [], ""),
        (0, 2, [TAINT], "succeeded-daemon-pod"),
        (1, 1, [TAINT], None),
        (0, 3, [TAINT], ""),
        (0, 3, [TAINT, TAINT], "succeeded-daemon-pod"),
    ],
)
def test_deletes_of_one_that_succeeded_beside_an_eviction(
    upstream: int, fleet: int, before: list[Step], expected: str | None
) -> None:
    """An event of the succeeded pod's delete, and one more or less where a taint had made two delete a pod."""
    steps = [ENDING[0], *before, ENDING[1]]
    theirs = agent(ENDED, told=[("SuccessfulDelete", upstream)])
    ours = agent(daemon("new", "n1"), numberReady=1, told=[("SuccessfulDelete", fleet), ("SucceededDaemonPod", 1)])
    moment = Moment(steps, theirs, ours, theirs, ours)
    found = [each for each in differences(theirs, ours) if each.path[-1] == "Normal SuccessfulDelete"]
    assert {explain(each, moment) for each in found} == ({expected} - {None})


MADE_AGAIN = [
    of("DaemonSet", "agent", "delete_owner", propagation="Orphan"),
    of("DaemonSet", "agent", "create_owner"),
]
NEWEST = ("ControllerRevision", revision("agent-h2", "agent", 2, "h2"))


def test_pods_of_the_generation_count_as_updated() -> None:
    upstream = agent(NEWEST, daemon("new", "n1", "h2"), told=[("SuccessfulCreate", 1), ("SuccessfulDelete", 1)])
    fleet = agent(NEWEST, daemon("old", "n1", "h1"))
    assert explained(upstream, fleet, MADE_AGAIN) == {"template-generation"}
    assert unexplained(upstream, fleet, MADE_AGAIN[1:])
    told = [("SuccessfulCreate", 1), ("SuccessfulDelete", 1)]
    once_more = agent(NEWEST, daemon("new", "n1", "h2"), told=told, repeated=1)
    assert explained(once_more, fleet, MADE_AGAIN) == {"template-generation"}
    assert unexplained(agent(NEWEST, daemon("new", "n1", "h2"), told=[told[0], (told[1][0], 2)]), fleet, MADE_AGAIN)
    assert unexplained(upstream, fleet, [*MADE_AGAIN, of("DaemonSet", "agent", "undo", back=1)])
    assert unexplained(upstream, agent(NEWEST, daemon("old", "n1", "h1", "2")), MADE_AGAIN)


def test_a_refused_daemon_pod_is_told_in_the_status() -> None:
    steps = [of("DaemonSet", "agent", "create_owner"), Step("set_quota", {"more": 0})]
    before = agent(daemon("a", "n1"), desiredNumberScheduled=1)
    fleet = agent(daemon("a", "n1"), desiredNumberScheduled=2, numberUnavailable=1)
    assert explained(before, fleet, steps, before) == {"status-of-a-failed-sync"}
    assert unexplained(before, fleet, steps[:1], before)
    assert unexplained(before, fleet, [*steps, Step("drop_quota", {})], before)
    assert unexplained(agent(daemon("a", "n1"), desiredNumberScheduled=3), fleet, steps, before)


COUNTED = {"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 2, "numberAvailable": 2}
FEWER = {**dict.fromkeys(COUNTED, 1), "numberMisscheduled": 1}
KEEPING = replace(TAINT, about={**TAINT.about, "effect": "NoSchedule"})
TAINTED = [of("DaemonSet", "agent", "create_owner"), KEEPING]


@pytest.mark.parametrize("version", [V1_33, V1_36])
def test_a_taint_that_comes_is_counted_by_the_fleet_alone(version: Version) -> None:
    as_it_was, counted = agent(**COUNTED), agent(**FEWER)
    assert explained(as_it_was, counted, TAINTED, version=version) == {"status-after-a-taint"}
    gone = agent(**{**FEWER, "numberReady": 2, "numberUnavailable": 0})
    assert explained(agent(**COUNTED, numberUnavailable=1), gone, TAINTED, version=version) == {"status-after-a-taint"}
    assert explained(counted, as_it_was, [*TAINTED, KEEPING], version=version) == {"status-after-a-taint"}, "it goes"


@pytest.mark.parametrize(
    ("fleet", "steps", "before", "version"),
    [
        (FEWER, TAINTED, COUNTED, Version(1, 32, 9)),
        (FEWER, TAINTED[:1], COUNTED, V1_36),
        (FEWER, [KEEPING, TAINTED[0]], COUNTED, V1_36),
        (FEWER, TAINTED, FEWER, V1_36),
        ({**FEWER, "numberMisscheduled": 2}, TAINTED, COUNTED, V1_36),
        ({**FEWER, "desiredNumberScheduled": 0}, TAINTED, COUNTED, V1_36),
        ({**FEWER, "numberReady": 0}, TAINTED, COUNTED, V1_36),
        ({**FEWER, "collisionCount": 1}, TAINTED, COUNTED, V1_36),
        ({**COUNTED, "numberReady": 1}, TAINTED, COUNTED, V1_36),
    ],
    ids=[
        "an older version",
        "no taint",
        "a taint before it was made",
        "upstream has counted since",
        "two nodes",
        "two nodes less",
        "two pods less",
        "something else",
        "no node less",
    ],
)
def test_a_taint_explains_no_more(
    fleet: dict[str, int], steps: list[Step], before: dict[str, int], version: Version
) -> None:
    assert "" in explained(agent(**COUNTED), agent(**fleet), steps, agent(**before), version=version)


@pytest.mark.parametrize(
    ("id", "since", "until"),
    [
        ("deletion-cost", None, (1, 22)),
        ("logarithmic-age", None, (1, 22)),
        ("uid-decides", (1, 22), None),
        ("succeeded-daemon-pod", None, (1, 27)),
        ("status-of-a-failed-sync", None, (1, 27)),
        ("ended-and-held", None, (1, 28)),
        ("status-after-a-taint", (1, 33), None),
        ("template-generation", None, (1, 36)),
        ("deleted-twice", None, None),
        ("evicted", None, None),
    ],
)
def test_of_which_versions_an_explanation_holds(
    id: str, since: tuple[int, int] | None, until: tuple[int, int] | None
) -> None:
    (found,) = [each for each in EXPLANATIONS if each.id == id]
    willing = replace(found, covers=lambda *_: True)
    empty = agent()

    def holds(version: Version) -> bool:
        moment = Moment((), empty, empty, empty, empty, version)
        return willing.explains(Difference(("x",), 1, 2), moment)

    held = [minor for minor in range(20, 41) if holds(Version(1, minor, 7))]
    assert held == list(range(since[1] if since else 20, until[1] if until else 41))


@pytest.mark.parametrize(
    ("upstream", "repeated", "fleet", "steps", "expected"),
    [
        (2, 0, 1, [], ""),
        (1, 1, 1, [], "deleted-twice"),
        (1, 1, 2, [], None),
        (1, 1, 3, [], ""),
        (2, 1, 1, [], ""),
        (2, 0, 1, [TAINT], "evicted"),
        (1, 0, 2, [TAINT], "evicted"),
        (3, 0, 1, [TAINT], ""),
        (2, 0, 1, [replace(TAINT, about={**TAINT.about, "effect": "NoSchedule"})], ""),
        (2, 0, 1, [TAINT, of("DaemonSet", "agent", "create_owner")], ""),
    ],
)
def test_numbers_of_deletes(upstream: int, repeated: int, fleet: int, steps: list[Step], expected: str | None) -> None:
    theirs = agent(told=[("SuccessfulDelete", upstream)], repeated=repeated)
    ours = agent(told=[("SuccessfulDelete", fleet)])
    moment = Moment(steps, theirs, ours, theirs, ours)
    assert {explain(each, moment) for each in differences(theirs, ours)} == ({expected} - {None})


def test_nothing_explains_another_owner() -> None:
    """The same difference of a ReplicaSet."""
    strange = Difference(("events", "ReplicaSet/web", "Normal SuccessfulDelete"), 2, 1)
    empty: Snapshot = {"owners": {}, "pods": {}, "revisions": {}, "marks": {}}
    told = {"events": {"ReplicaSet/web": {"counts": {}, "again": {"Normal SuccessfulDelete": 1}, "spam": False}}}
    taken = {**empty, **told}
    assert explain(strange, Moment([TAINT], taken, taken, taken, taken)) == ""


def test_every_explanation_has_its_line() -> None:
    text = DOCUMENT.read_text()
    ids = [each.id for each in EXPLANATIONS]
    assert len(set(ids)) == len(ids)
    for each in ids:
        assert f"| `{each}` |" in text
