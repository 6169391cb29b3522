"""The guard counts exactly the pods that concern a namespace."""

from __future__ import annotations

from typing import Any

import pytest

import oarlock
from examples.operators.quotaguard import MAX, REPORT, namespace_of, quotaguard
from oarlock.testing import Cluster, gone


def namespace(limit: str | None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "annotations": {} if limit is None else {MAX: limit}},
    }


def pods(*phases: str) -> oarlock.Children:
    return oarlock.Children(
        others=[
            {"kind": "Pod", "metadata": {"name": f"p{at}", "namespace": "shop"}, "status": {"phase": phase}}
            for at, phase in enumerate(phases)
        ]
    )


@pytest.mark.parametrize(
    ("phases", "data", "warned"),
    [
        ((), {"pods": "0", "max": "2", "over": "0"}, False),
        (("Running", "Pending"), {"pods": "2", "max": "2", "over": "0"}, False),
        (("Running", "Pending", "Failed", "Succeeded"), {"pods": "2", "max": "2", "over": "0"}, False),
        (("Running", "Running", "Running"), {"pods": "3", "max": "2", "over": "1"}, True),
    ],
)
def test_reports(phases: tuple[str, ...], data: dict[str, str], warned: bool) -> None:
    result = quotaguard(namespace("2"), pods(*phases))
    (report,) = result.children
    assert (report["metadata"], report["data"]) == ({"name": REPORT, "namespace": "shop"}, data)
    assert bool(result.events) is warned


def test_a_namespace_without_a_limit_has_no_report() -> None:
    assert quotaguard(namespace(None), pods("Running")).children == ()


def test_a_limit_that_is_no_number() -> None:
    with pytest.raises(oarlock.Never, match="not a number"):
        quotaguard(namespace("many"), pods())


def test_index() -> None:
    assert namespace_of({"metadata": {"name": "p", "namespace": "shop"}}) == ["shop"]


def test_in_a_cluster(cluster: Cluster) -> None:
    me = f"namespace/{cluster.namespace}"
    cluster.patch(me, {"metadata": {"annotations": {MAX: "1"}}})
    cluster.wait(f"configmap/{REPORT}", lambda it: it["data"] == {"pods": "0", "max": "1", "over": "0"})
    for name in ("a", "b", "c"):
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
        )
    cluster.wait(f"configmap/{REPORT}", lambda it: it["data"]["over"] == "2")
    cluster.delete("pod/b")
    cluster.wait(f"configmap/{REPORT}", lambda it: it["data"] == {"pods": "2", "max": "1", "over": "1"})
    cluster.patch(me, {"metadata": {"annotations": {MAX: None}}})
    cluster.wait(f"configmap/{REPORT}", gone)
