"""Two controllers of one kind, which both make children of one kind."""

from __future__ import annotations

from collections import Counter
from typing import Any

import oarlock
from oarlock.testing import Cluster
from oarlock.testing.until import gone

ACCOUNT = oarlock.Kind("v1", "ServiceAccount")


def made(obj: dict[str, Any], part: str) -> oarlock.Result:
    if obj["metadata"].get("labels", {}).get(part) == "no":
        return oarlock.Result()
    meta = {"name": f"{obj['metadata']['name']}-{part}"}
    return oarlock.Result([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"v": "1"}}])


@oarlock.desired(ACCOUNT, children=["v1 ConfigMap"])
def first(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    return made(obj, "first")


@oarlock.desired(ACCOUNT, children=["v1 ConfigMap"])
def second(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    return made(obj, "second")


def test_each_leaves_the_children_of_the_other_alone() -> None:
    with Cluster(operator=[first, second]) as cluster:
        cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}})
        uids = [cluster.wait(f"configmaps/a-{part}")["metadata"]["uid"] for part in ("first", "second")]
        cluster.patch("serviceaccounts/a", {"metadata": {"labels": {"first": "no"}}})
        cluster.wait("configmaps/a-first", gone)
        assert cluster.get("configmaps/a-second")["metadata"]["uid"] == uids[1]


@oarlock.desired(ACCOUNT, children=["v1 ConfigMap"])
def third(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    """Wants a child of `first`, with another content."""
    return oarlock.Result([{**wish, "data": {"v": "3"}} for wish in made(obj, "first").children])


def test_a_child_that_two_want_is_left_to_one_and_the_other_says_so() -> None:
    with Cluster(operator=[first, third]) as cluster:
        cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}})
        before = cluster.wait("configmaps/a-first")
        owner, other = ("first", "third") if before["data"] == {"v": "1"} else ("third", "first")
        taken = f"ConfigMap a-first is made by the controller {owner}; it is left alone: give it another name"
        cluster.wait("events", lambda found: any(each["message"] == taken for each in found))
        assert cluster.get("configmaps/a-first") == before
        # The accounts that the cluster has by itself are each their own contest, which either may have won.
        of_a = [each for each in cluster.list("events") if each["involvedObject"]["name"] == "a"]
        assert {each["source"]["component"] for each in of_a if each["reason"] == "NameTaken"} == {other}


class Board(oarlock.Object):
    status: dict[str, Any] | None = None


oarlock.resource("example.com/v1")(Board)
WISHES: Counter[str] = Counter()


@oarlock.desired(Board)
def left(obj: Board, children: oarlock.Children) -> oarlock.Result:
    WISHES["left"] += 1
    return oarlock.Result(status={"by": "left"})


@oarlock.desired(Board)
def right(obj: Board, children: oarlock.Children) -> oarlock.Result:
    return oarlock.Result(status={"by": "right"})


def test_two_that_write_one_status_are_slowed_down_and_told() -> None:
    """Each write wakes the other. Without an end they would keep the API server busy."""
    with Cluster(operator=[left, right], controllers="", nodes=0) as cluster:
        cluster.create({"apiVersion": "example.com/v1", "kind": "Board", "metadata": {"name": "a"}})
        cluster.wait("events", lambda listed: [each for each in listed if each["reason"] == "StatusUndone"])
        for seconds in (2, 4, 8):
            before = cluster.get("board/a")["metadata"]["resourceVersion"]
            cluster.time.advance(seconds)  # longer than the wait is by now
            cluster.wait("board/a", lambda it, before=before: it["metadata"]["resourceVersion"] != before)
        assert WISHES["left"] < 100
