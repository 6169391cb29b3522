"""Where the pods of a DaemonSet belong, and how many nodes may be down, by tables."""

from __future__ import annotations

import pytest

from oarlock.chaos.judge.evidence.placing import Place, limit_of, place
from oarlock.chaos.judge.evidence.sightings import DaemonSetSeen, NodeSeen, TaintSeen, Tolerance

HERE, STAYS, NOWHERE = Place(True, True), Place(False, True), Place(False, False)
SET = DaemonSetSeen(1, 0.0, False, "daemonset:shop/web", "u", 1)
NODE = NodeSeen(1, 0.0, False, "n1", "un", (("os", "linux"), ("zone", "a")))


@pytest.mark.parametrize(
    ("selector", "tolerations", "taints", "expected"),
    [
        ((), (), (), HERE),
        ((("zone", "a"),), (), (), HERE),
        ((("zone", "a"), ("os", "linux")), (), (), HERE),
        ((("zone", "a"), ("os", "windows")), (), (), NOWHERE),
        ((("other", "a"),), (), (), NOWHERE),
        ((), (), (("k", "NoSchedule", ""),), STAYS),
        ((), (), (("k", "NoExecute", ""),), NOWHERE),
        ((), (), (("k", "NoSchedule", ""), ("k", "NoExecute", "")), NOWHERE),
        ((), (), (("k", "PreferNoSchedule", ""),), HERE),
        ((), (Tolerance("k", "Exists"),), (("k", "NoSchedule", "v"), ("k", "NoExecute", "v")), HERE),
        ((), (Tolerance("k", "Exists", "", "NoSchedule"),), (("k", "NoExecute", ""),), NOWHERE),
        ((), (Tolerance("k", "", "v"),), (("k", "NoSchedule", "v"),), HERE),
        ((), (Tolerance("k", "Equal", "w"),), (("k", "NoSchedule", "v"),), STAYS),
        ((), (Tolerance("", "Exists"),), (("any", "NoExecute", "v"),), HERE),
        ((), (), (("node.kubernetes.io/unschedulable", "NoSchedule", ""),), HERE),
        ((), (), (("node.kubernetes.io/not-ready", "NoExecute", ""),), HERE),
        ((), (), (("node.kubernetes.io/not-ready", "NoSchedule", ""),), STAYS),
        ((("zone", "b"),), (), (("k", "NoSchedule", ""),), NOWHERE),
    ],
)
def test_place(
    selector: tuple[tuple[str, str], ...],
    tolerations: tuple[Tolerance, ...],
    taints: tuple[tuple[str, str, str], ...],
    expected: Place,
) -> None:
    daemons = SET._replace(node_selector=selector, tolerations=tolerations)
    assert place(daemons, NODE._replace(taints=tuple(TaintSeen(*each) for each in taints))) == expected


@pytest.mark.parametrize(
    ("strategy", "limit", "surge", "nodes", "expected"),
    [
        ("RollingUpdate", "2", "0", 10, 2),
        ("RollingUpdate", "50%", "0", 3, 2),
        ("RollingUpdate", "1%", "0", 100, 1),
        ("RollingUpdate", "100%", "", 4, 4),
        ("RollingUpdate", "0%", "0", 4, 1),
        ("RollingUpdate", "0", "0", 0, 0),
        ("RollingUpdate", "0", "25%", 10, 0),
        ("RollingUpdate", "0", "1", 10, 0),
        ("OnDelete", "", "", 10, 0),
    ],
)
def test_limit(strategy: str, limit: str, surge: str, nodes: int, expected: int) -> None:
    assert limit_of(SET._replace(strategy=strategy, limit=limit, surge=surge), nodes) == expected
