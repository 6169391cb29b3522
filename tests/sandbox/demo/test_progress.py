"""Counting from what a watch saw: pods too many, nodes with two daemon pods, what is down while pods are replaced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oarlock.sandbox.demo.deployments import RolledOut
from oarlock.sandbox.demo.progress import Goal, how_far
from oarlock.sandbox.demo.seen import DaemonsSeen, DeploymentSeen, PodSeen, Seen, SetSeen
from oarlock.sandbox.demo.surplus import duplicate_daemons, most_and_fewest, most_nodes_down, pods_too_many


def history(text: str) -> list[Seen]:
    """``r3``: the set asks for 3; ``s3``: and its status says all is there; ``+a``: pod a is active; ``-a``: it is not
    any more; ``~a``: it is changed.
    """
    events: list[Seen] = []
    for rv, word in enumerate(text.split(), start=1):
        count = int(word[1:]) if word[1:].isdigit() else 0
        if word[0] == "r":
            events.append(SetSeen(rv, "u", "ns/web", count, generation=1))
        elif word[0] == "s":
            events.append(SetSeen(rv, "u", "ns/web", count, ready=count, available=count, created=count, updated=count))
        else:
            events.append(PodSeen(rv, word[1:], "u", word[0] in "+~"))
    return events


@pytest.mark.parametrize(
    ("text", "excess"),
    [
        pytest.param("r2 +a +b", {}, id="as many as asked for"),
        pytest.param("r2 +a +b +c", {"ReplicaSet ns/web": 1}, id="one too many"),
        pytest.param("r2 +a +b +c +d -a -b", {"ReplicaSet ns/web": 2}, id="the most there ever were counts"),
        pytest.param("r2 +a +b -a +c", {}, id="a replacement"),
        pytest.param("r2 +a +b ~a ~b", {}, id="a change of a pod is no new pod"),
        pytest.param("r2 +a +b r4 +c +d", {}, id="scaled up"),
        pytest.param("r4 +a +b +c +d r2 ~a ~b -c -d", {}, id="scaled down: the others are on their way out"),
        pytest.param("r4 +a +b r2 +c +d -c -d", {}, id="scaled down while creates were under way"),
        pytest.param("r4 +a +b r2 s2 +c", {"ReplicaSet ns/web": 1}, id="the status says that nothing is under way"),
        pytest.param(
            "r4 +a +b +c +d r2 -c -d s2 +e",
            {"ReplicaSet ns/web": 1},
            id="at rest after a scale-down, the old bound is void",
        ),
        pytest.param("r1 +a r0 -a s0 +b", {"ReplicaSet ns/web": 1}, id="a pod for a set that asks for none"),
    ],
)
def test_pods_too_many(text: str, excess: dict[str, int]) -> None:
    assert pods_too_many(history(text)) == excess


def test_a_pod_that_is_released_counts_no_more() -> None:
    events = [*history("r1 +a"), PodSeen(3, "a", "", True), PodSeen(4, "b", "u", True)]
    assert pods_too_many(events) == {}


def test_a_set_is_settled_when_its_status_says_so_for_this_generation() -> None:
    done = SetSeen(1, "u", "ns/web", 2, generation=3, observed=3, ready=2, available=2, created=2, updated=2)
    assert done.settled
    assert not replace(done, generation=4).settled
    assert not replace(done, available=1).settled
    assert not replace(done, created=3, updated=3).settled


def test_a_replicationcontroller_of_the_same_name_is_another() -> None:
    sets = [SetSeen(1, "a", "ns/web", 1), SetSeen(2, "b", "ns/web", 2, kind="ReplicationController")]
    pods = [PodSeen(rv, f"p{rv}", "b", True) for rv in (3, 4, 5)]
    assert pods_too_many([*sets, *pods]) == {"ReplicationController ns/web": 1}


def daemons(text: str, **more: Any) -> list[Seen]:
    """``+a1``: pod a is there, made for node 1; ``*a1``: and ready; ``-a1``: it is terminating or gone; ``f-a1``: it
    has failed; ``s``: the set may put a second pod on a node from now on; ``d``: not any more.
    """
    events: list[Seen] = [DaemonsSeen(1, "u", "ns/agent", 3, **more)]
    for rv, word in enumerate(text.split(), start=2):
        if word in ("s", "d"):
            events.append(DaemonsSeen(rv, "u", "ns/agent", 3, surge=1 if word == "s" else 0))
            continue
        mark, pod, node = word[:-2], word[-2], word[-1]
        there = mark != "-"
        events.append(PodSeen(rv, pod, "u", there and mark != "f-", node, there, mark == "*", 10_000, rv * 1000))
    return events


@pytest.mark.parametrize(
    ("text", "excess"),
    [
        pytest.param("+a1 +b2 +c3", {}, id="one a node"),
        pytest.param("+a1 +b1", {"DaemonSet ns/agent": 1}, id="two on one"),
        pytest.param("+a1 +b1 +c1 -b1 -c1", {"DaemonSet ns/agent": 2}, id="the most there ever were"),
        pytest.param("+a1 -a1 +b1", {}, id="a replacement beside one that is terminating"),
        pytest.param("+a1 *a1 *a1", {}, id="a change of a pod is no new pod"),
        pytest.param("+a1 f-a1 +b1", {"DaemonSet ns/agent": 1}, id="beside one that failed"),
        pytest.param("s +a1 +b1", {}, id="surging"),
        pytest.param("s +a1 +b1 +c1", {"DaemonSet ns/agent": 1}, id="a third while surging"),
        pytest.param("s +a1 +b1 d", {}, id="a second that was allowed when it was made"),
    ],
)
def test_duplicate_daemons(text: str, excess: dict[str, int]) -> None:
    assert duplicate_daemons(daemons(text)) == excess


def test_a_pod_that_was_adopted_is_no_duplicate() -> None:
    events = [*daemons("+a1"), PodSeen(9, "o", "", True, "1", True), PodSeen(10, "o", "u", True, "1", True)]
    assert duplicate_daemons(events) == {}


@pytest.mark.parametrize(
    ("text", "from_rv", "most"),
    [
        pytest.param("*a1 *b2 *c3", 4, 0, id="all up"),
        pytest.param("*a1 *b2 *c3 -a1 +d1 *d1 -b2 *e2", 4, 1, id="one after the other"),
        pytest.param("*a1 *b2 *c3 -a1 -b2 *d1 *e2", 4, 2, id="two at once"),
        pytest.param("*a1 *b2 *c3 -a1 +d1 -b2 *d1 *e2", 4, 2, id="a new pod that is not ready yet counts"),
        pytest.param("*a1 *b2 *c3 +d1 *d1 -a1", 4, 0, id="a second pod first"),
        pytest.param("-x1 *a1 *b2 *c3", 5, 0, id="what was before does not count"),
        pytest.param("*a1 *b2 *c3 +d4", 4, 0, id="nor does a node that comes later"),
    ],
)
def test_most_nodes_down(text: str, from_rv: int, most: int) -> None:
    assert most_nodes_down(daemons(text), "u", from_rv) == most


def test_ready_is_not_enough_where_pods_have_to_stay_ready() -> None:
    events = daemons("*a1 *b2 *c3 -a1 -b2 *d1 *e2")  # ready since 10 s, looked at from 2 s to 8 s
    assert most_nodes_down(events, "u", 4, min_ready_s=0) == 2
    assert most_nodes_down(events, "u", 4, min_ready_s=1) == 3


@pytest.mark.parametrize(
    ("limit", "surge", "nodes", "allowed", "surges"),
    [
        pytest.param("25%", 0, 12, 3, False, id="percent"),
        pytest.param("10%", None, 12, 2, False, id="percent are rounded up"),
        pytest.param(2, None, 12, 2, False, id="a number"),
        pytest.param(0, "50%", 12, 0, True, id="surging"),
        pytest.param(0, 0, 12, 1, False, id="neither: one"),
        pytest.param("100%", 0, 0, 0, False, id="no nodes"),
    ],
)
def test_limits(limit: int | str, surge: int | str | None, nodes: int, allowed: int, surges: bool) -> None:
    seen = DaemonsSeen(1, "u", "ns/agent", nodes, limit=limit, surge=surge)
    assert (seen.down_allowed, seen.surges) == (allowed, surges)
    assert not DaemonsSeen(1, "u", "ns/agent", nodes, limit=limit, surge=surge, strategy="OnDelete").surges


DONE = DaemonsSeen(1, "u", "ns/agent", 3, 2, 2, created=3, ready=3, updated=3, available=3)


def test_a_daemonset_is_settled_when_its_status_says_so() -> None:
    assert DONE.settled
    for field in ("created", "ready", "updated", "available", "observed"):
        assert not replace(DONE, **{field: 1}).settled, field
    assert not replace(DONE, misplaced=1).settled
    assert how_far(replace(DONE, updated=1, available=2)) == "ns/agent 1/3 replaced"
    assert how_far(replace(DONE, available=2)) == "ns/agent 2/3"


def test_goals() -> None:
    web = SetSeen(1, "u", "ns/web", 2, ready=2, available=2, created=2, updated=2)
    assert Goal(2).reached(web)
    assert not Goal(3).reached(web), "settled at what it asked for before"
    assert not Goal(2).reached(None)
    assert Goal(None, 2).reached(DONE)
    assert not Goal(None, 3).reached(DONE), "the watch has not shown the change yet"


def rolling(text: str) -> list[Seen]:
    """Two ReplicaSets of a Deployment, o and n, and one x of nobody. ``+oa``: pod a of o is there; ``*oa``: and ready;
    ``-oa``: it is terminating or gone.
    """
    events: list[Seen] = [SetSeen(1, name, f"ns/{name}", 2, owner_uid="u" if name != "x" else "") for name in "onx"]
    for rv, (mark, owner, pod) in enumerate(text.split(), start=2):
        there = mark != "-"
        events.append(PodSeen(rv, pod, owner, there, "1", there, mark == "*", 10_000, rv * 1000))
    return events


@pytest.mark.parametrize(
    ("text", "most", "fewest"),
    [
        pytest.param("*oa *ob +nc *nc -oa", 3, 2, id="one more first"),
        pytest.param("*oa *ob -oa +nc *nc -ob +nd *nd", 2, 1, id="one fewer first"),
        pytest.param("*oa *ob +nc +nd -oa -ob *nc *nd", 4, 0, id="all at once"),
        pytest.param("*oa *ob +xc +xd +nc *nc -oa", 3, 2, id="pods of others do not count"),
    ],
)
def test_most_and_fewest_pods_of_a_deployment(text: str, most: int, fewest: int) -> None:
    assert most_and_fewest(rolling(text), "u", 3) == (most, fewest)


@pytest.mark.parametrize(("most", "fewest", "kept"), [(8, 5, True), (9, 5, False), (8, 4, False), (None, None, True)])
def test_limits_of_a_deployment(most: int | None, fewest: int | None, kept: bool) -> None:
    rolled = RolledOut("Deployment ns/web", "u", 6, surge=2, unavailable=1, min_ready_s=0, from_rv=1)
    rolled.most, rolled.fewest = most, fewest
    assert rolled.kept_limits is kept


def test_a_deployment_is_settled_or_stuck_when_its_status_says_so() -> None:
    counts = {"created": 3, "ready": 3, "updated": 3, "available": 3}
    done = DeploymentSeen(1, "u", "ns/web", 3, 2, 2, **counts)
    assert done.settled
    assert not replace(done, created=4, updated=3).settled, "old pods are left"
    assert how_far(replace(done, created=4, updated=1)) == "ns/web 1/3 replaced"
    assert how_far(replace(done, created=1, updated=1, available=0)) == "ns/web 0/3", "a new one"
    stuck = replace(done, updated=1, stuck=True)
    assert Goal(None, 2, stuck=True).reached(stuck)
    assert not Goal(None, 3, stuck=True).reached(replace(stuck, generation=3)), "of an earlier generation"
    assert not Goal(None, 2, stuck=True).reached(done)
