"""Two controllers of one kind, which both make children of one kind."""

from __future__ import annotations

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
