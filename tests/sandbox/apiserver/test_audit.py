"""The audit log: what a checker can rely on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.sandbox.api_harness import MERGE, PODS, SETS, Api, pod, quick, replicaset, running


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def do_some_writes(api: Api) -> None:
    api.create(PODS, pod("a"))
    api.get(f"{PODS}/a")
    api.call("POST", PODS, pod("a"))
    api.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
    api.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    api.create(SETS, replicaset())
    api.patch(f"{SETS}/web/scale", {"spec": {"replicas": 1}})


def test_every_write_has_one_line(tmp_path: Path) -> None:
    """The log is complete once the server has stopped; reads are left out."""
    log = tmp_path / "audit.log"
    with running(quick(audit_log=log)) as api:
        do_some_writes(api)
    found = events(log)
    assert [(e["verb"], e["objectRef"]["resource"], e["objectRef"].get("subresource"), e["level"]) for e in found] == [
        ("create", "pods", None, "RequestResponse"),
        ("create", "pods", None, "RequestResponse"),
        ("patch", "pods", "status", "RequestResponse"),
        ("delete", "pods", None, "RequestResponse"),
        ("create", "replicasets", None, "Metadata"),
        ("patch", "replicasets", "scale", "Metadata"),
    ]
    assert [e["responseStatus"]["code"] for e in found] == [201, 409, 200, 200, 201, 200]
    assert [e["annotations"]["oarlock.io/committed"] for e in found] == [
        "true",
        "false",
        "true",
        "true",
        "true",
        "true",
    ]
    assert len({e["auditID"] for e in found}) == 6


def test_one_event_in_full(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with running(quick(audit_log=log)) as api:
        body = json.dumps(pod("a"), indent=2).encode()  # over several lines, as people write it
        headers = {"Content-Type": "application/json", "User-Agent": "tester/1", "X-Remote-User": "ann"}
        code, answer = api.raw("POST", f"{PODS}?fieldManager=t", body, headers)
        assert code == 201
    (event,) = events(log)
    stored = json.loads(answer)
    assert (event["kind"], event["apiVersion"], event["stage"]) == ("Event", "audit.k8s.io/v1", "ResponseComplete")
    assert event["requestURI"] == f"{PODS}?fieldManager=t"
    assert (event["user"], event["userAgent"]) == ({"username": "ann"}, "tester/1")
    assert event["sourceIPs"] == ["127.0.0.1"]
    assert event["objectRef"] == {
        "resource": "pods",
        "namespace": "default",
        "name": "a",
        "uid": stored["metadata"]["uid"],
        "apiVersion": "v1",
        "resourceVersion": stored["metadata"]["resourceVersion"],
    }
    assert (event["requestObject"], event["responseObject"]) == (pod("a"), stored)
    for field in ("requestReceivedTimestamp", "stageTimestamp"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event[field])
    assert event["requestReceivedTimestamp"] <= event["stageTimestamp"]


def test_anonymous_and_groups(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with running(quick(audit_log=log)) as api:
        api.create(SETS, replicaset())
    (event,) = events(log)
    assert event["user"] == {"username": "system:anonymous"}
    assert event["objectRef"]["apiGroup"] == "apps"
    assert "requestObject" not in event


def test_more_can_be_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with running(quick(audit_log=log, audit_full_for_all=True, audit_reads=True)) as api:
        api.create(SETS, replicaset())
        api.get(SETS)
        api.call("PATCH", f"{SETS}/none", {}, MERGE)
    found = events(log)
    assert [e["verb"] for e in found] == ["create", "list", "patch"]
    assert found[0]["requestObject"]["kind"] == "ReplicaSet"
    assert found[2]["responseObject"]["reason"] == "NotFound"
