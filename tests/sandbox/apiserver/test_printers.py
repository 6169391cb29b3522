"""Rows of `kubectl get`, kind by kind, and ages."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.sandbox.apiserver.kinds.kinds import KINDS
from oarlock.sandbox.apiserver.text.times import human_duration, rfc3339, rfc3339_micro, unix_seconds

NOW_S = 1_700_000_000.0
META = {"name": "x", "namespace": "d", "creationTimestamp": rfc3339(NOW_S - 90)}


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0.4, "0s"),
        (119, "119s"),
        (120, "2m"),
        (185, "3m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 60, "5h1m"),
        (20 * 3600, "20h"),
        (48 * 3600, "2d"),
        (3 * 86400 + 7200, "3d2h"),
        (100 * 86400, "100d"),
        (3 * 365 * 86400 + 86400, "3y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


def test_timestamps_go_there_and_back() -> None:
    assert rfc3339(NOW_S) == "2023-11-14T22:13:20Z"
    assert rfc3339_micro(NOW_S + 0.25) == "2023-11-14T22:13:20.250000Z"
    assert unix_seconds("2023-11-14T22:13:20Z") == NOW_S
    assert unix_seconds("2023-11-14T22:13:20.250000Z") == NOW_S + 0.25
    with pytest.raises(ValueError):
        unix_seconds("yesterday")


def container(
    state: dict[str, Any] | None = None, ready: bool = False, restarts: int = 0, **more: Any
) -> dict[str, Any]:
    return {"name": "c", "ready": ready, "restartCount": restarts, "state": state or {}, **more}


RUNNING: dict[str, Any] = {"running": {"startedAt": rfc3339(NOW_S)}}
READY = {"type": "Ready", "status": "True"}

PODS: list[Any] = [
    pytest.param({}, {"phase": "Pending"}, {}, ["0/1", "Pending", "0"], id="fresh"),
    pytest.param(
        {}, {"phase": "Running", "containerStatuses": [container(RUNNING, True)]}, {}, ["1/1", "Running", "0"], id="up"
    ),
    pytest.param(
        {},
        {"phase": "Running", "containerStatuses": [container(RUNNING)]},
        {},
        ["0/1", "Running", "0"],
        id="running, not ready",
    ),
    pytest.param(
        {},
        {"phase": "Pending", "containerStatuses": [container({"waiting": {"reason": "ImagePullBackOff"}})]},
        {},
        ["0/1", "ImagePullBackOff", "0"],
        id="waiting",
    ),
    pytest.param(
        {},
        {
            "phase": "Running",
            "containerStatuses": [
                container(
                    {"waiting": {"reason": "CrashLoopBackOff"}},
                    restarts=4,
                    lastState={"terminated": {"finishedAt": rfc3339(NOW_S - 65)}},
                )
            ],
        },
        {},
        ["0/1", "CrashLoopBackOff", "4 (65s ago)"],
        id="crashing",
    ),
    pytest.param(
        {},
        {"phase": "Failed", "containerStatuses": [container({"terminated": {"exitCode": 3}})]},
        {},
        ["0/1", "ExitCode:3", "0"],
        id="ended badly",
    ),
    pytest.param(
        {},
        {"phase": "Succeeded", "containerStatuses": [container({"terminated": {"reason": "Completed"}})]},
        {},
        ["0/1", "Completed", "0"],
        id="ended well",
    ),
    pytest.param({}, {"phase": "Failed", "reason": "Evicted"}, {}, ["0/1", "Evicted", "0"], id="evicted"),
    pytest.param(
        {},
        {"phase": "Running", "containerStatuses": [container(RUNNING, True)]},
        {"deletionTimestamp": rfc3339(NOW_S)},
        ["1/1", "Terminating", "0"],
        id="leaving",
    ),
    pytest.param(
        {},
        {"phase": "Running", "reason": "NodeLost"},
        {"deletionTimestamp": rfc3339(NOW_S)},
        ["0/1", "Unknown", "0"],
        id="node lost",
    ),
    pytest.param(
        {"initContainers": [{"name": "i"}, {"name": "j"}]},
        {
            "phase": "Pending",
            "initContainerStatuses": [
                {"name": "i", "state": {"terminated": {"exitCode": 0}}},
                {"name": "j", "state": RUNNING},
            ],
        },
        {},
        ["0/1", "Init:1/2", "0"],
        id="initialising",
    ),
    pytest.param(
        {"initContainers": [{"name": "s", "restartPolicy": "Always"}]},
        {
            "phase": "Running",
            "initContainerStatuses": [
                {"name": "s", "ready": True, "started": True, "restartCount": 2, "state": RUNNING}
            ],
            "containerStatuses": [container(RUNNING, True)],
            "conditions": [READY],
        },
        {},
        ["2/2", "Running", "2"],
        id="a sidecar counts",
    ),
]


@pytest.mark.parametrize(("spec", "status", "meta", "cells"), PODS)
def test_pods(spec: dict[str, Any], status: dict[str, Any], meta: dict[str, Any], cells: list[str]) -> None:
    obj = {"metadata": META | meta, "spec": {"containers": [{"name": "c"}], **spec}, "status": status}
    row = KINDS["Pod"].printer.row(obj, NOW_S)
    assert row[0] == "x"
    assert row[1:4] == cells
    assert row[4:] == ["90s", "<none>", "<none>", "<none>", "<none>"]


OTHERS: list[Any] = [
    ("Namespace", {"status": {"phase": "Active"}}, ["x", "Active", "90s"]),
    (
        "Node",
        {
            "metadata": META | {"labels": {"node-role.kubernetes.io/worker": ""}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [READY],
                "nodeInfo": {"kubeletVersion": "v1"},
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            },
        },
        ["x", "Ready,SchedulingDisabled", "worker", "90s", "v1", "10.0.0.1", "<none>", *["<unknown>"] * 3],
    ),
    (
        "Event",
        {
            "involvedObject": {"kind": "ReplicaSet", "name": "web"},
            "type": "Normal",
            "reason": "R",
            "message": "m\n",
            "count": 3,
            "source": {"component": "c", "host": "h"},
            "firstTimestamp": rfc3339(NOW_S - 60),
            "lastTimestamp": rfc3339(NOW_S - 10),
        },
        ["10s", "Normal", "R", "replicaset/web", "m", "", "c, h", "60s", 3, "x"],
    ),
    ("Lease", {"spec": {"holderIdentity": "me"}}, ["x", "me", "90s"]),
    (
        "ResourceQuota",
        {"status": {"hard": {"pods": "3", "limits.cpu": "4"}, "used": {"pods": "1"}}},
        ["x", "pods: 1/3", "limits.cpu: 0/4", "90s"],
    ),
    ("ServiceAccount", {}, ["x", 0, "90s"]),
    ("ConfigMap", {"data": {"a": "b"}, "binaryData": {"c": "ZA=="}}, ["x", 2, "90s"]),
    ("Secret", {"type": "Opaque", "data": {"a": "Yg=="}}, ["x", "Opaque", 1, "90s"]),
    (
        "Service",
        {"spec": {"type": "NodePort", "clusterIP": "10.1.1.1", "ports": [{"port": 80, "nodePort": 30080}]}},
        ["x", "NodePort", "10.1.1.1", "<none>", "80:30080/TCP", "90s", "<none>"],
    ),
]


@pytest.mark.parametrize(("kind", "parts", "cells"), OTHERS, ids=[case[0] for case in OTHERS])
def test_other_kinds(kind: str, parts: dict[str, Any], cells: list[Any]) -> None:
    assert KINDS[kind].printer.row({"metadata": META, **parts}, NOW_S) == cells


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_can_be_printed_empty(kind: str) -> None:
    """A row has a cell for each column even for an object with nothing in it."""
    printer = KINDS[kind].printer
    row = printer.row({"metadata": {"name": "x"}}, NOW_S)
    assert len(row) == len(printer.columns)
    assert all(isinstance(cell, str | int) for cell in row)
