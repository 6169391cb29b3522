"""The command: what it says and ends with, and what it asks for where it may not ask for everything."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from oarlock.cli.plan.admission import pod_admission
from oarlock.cli.plan.live import Read
from oarlock.cli.plan.warnings import of_upstream
from tests import ROOT
from tests.cli.cli_helpers import call, problems
from tests.cli.plan.rig import Obj, Rig, acts, is_read_or_dry, owner

pytestmark = pytest.mark.parametrize("rig", [pytest.param("", id="no-fleet")], indirect=True)


def plan(rig: Rig, *objs: Obj, more: tuple[str, ...] = ()) -> Result:
    return call("plan", "-f", rig.file(*objs), "--kubeconfig", str(rig.cluster.kubeconfig), *more)


def facts(rig: Rig, *objs: Obj) -> list[Obj]:
    result = plan(rig, *objs, more=("-o", "json"))
    assert result.exit_code == 0, result.stderr
    found: list[Obj] = json.loads(result.stdout)["plans"]
    return found


def test_what_is_created(rig: Rig) -> None:
    since = len(rig.asked())
    result = plan(rig, owner("Deployment", replicas=2), owner("DaemonSet", "agent"))
    assert result.exit_code == 0
    assert "creates 2 Pods web-" in result.stdout
    assert "Ends with 4 pods, 4 available." in result.stdout
    assert "The API server would admit a pod of it, says its dry run." in result.stdout
    calls = rig.asked(since)
    assert all(map(is_read_or_dry, calls))
    assert sorted((each["verb"], each["objectRef"]["resource"]) for each in calls) == [
        ("create", "daemonsets"),
        ("create", "deployments"),
        ("create", "pods"),
        ("create", "pods"),
        ("get", "daemonsets"),
        ("get", "deployments"),
        ("list", "controllerrevisions"),
        ("list", "nodes"),
        ("list", "pods"),  # once for both
        ("list", "replicasets"),
    ]
    assert rig.cluster.list("deployments") == []


def test_the_role_that_is_told_is_what_is_asked_for(rig: Rig) -> None:
    since = len(rig.asked())
    made = [owner(kind) for kind in ("Deployment", "ReplicaSet", "ReplicationController", "DaemonSet")]
    facts(rig, *made)
    for obj in made:
        rig.cluster.create(obj)
    facts(rig, *({**obj, "spec": {**obj["spec"], "minReadySeconds": 1}} for obj in made))
    calls = [each for each in rig.asked(since) if each["userAgent"].endswith("(plan)")]
    told = re.search(r"\n    rules:\n(?: {6}.*\n)+", (ROOT / "docs/plan.md").read_text())
    assert told is not None
    assert {(each["verb"], each["objectRef"].get("apiGroup", ""), each["objectRef"]["resource"]) for each in calls} == {
        (verb, rule["apiGroups"][0], resource)
        for rule in yaml.safe_load(told[0])["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_nothing_would_happen(rig: Rig) -> None:
    made = owner("ReplicaSet", replicas=0)
    rig.cluster.create(made)
    rig.cluster.patch("replicaset/web", {"status": {"observedGeneration": 1}}, subresource="status")
    result = plan(rig, made, more=("--exit-code",))
    assert (result.exit_code, result.stdout.splitlines()[1]) == (0, "Nothing would happen.")


def test_the_exit_code_tells_of_a_change_if_asked(rig: Rig) -> None:
    assert plan(rig, owner("ReplicaSet", replicas=1)).exit_code == 0
    assert plan(rig, owner("ReplicaSet", replicas=1), more=("--exit-code",)).exit_code == 1


@pytest.mark.parametrize(
    ("objs", "told"),
    [
        ([{"kind": "Deployment", "metadata": {"name": "x"}}], "plan.yaml:1: document 1: apiVersion: missing"),
        ([owner("ReplicaSet"), owner("Deployment", replicas=-1)], "document 2 (Deployment"),
        ([{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}], "no ReplicaSet, ReplicationController,"),
        ([{**owner("ReplicaSet"), "spce": {}}], "did you mean spec?"),
    ],
)
def test_bad_input(rig: Rig, objs: list[Obj], told: str) -> None:
    since = len(rig.asked())
    result = plan(rig, *objs)
    assert result.exit_code == 2
    assert told in result.stderr
    assert rig.asked(since) == []


def test_what_the_server_would_refuse(rig: Rig) -> None:
    rig.cluster.create(owner("Deployment"))
    other: Any = owner("Deployment")
    other["spec"]["selector"] = other["spec"]["template"]["metadata"] = None
    other["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    other["spec"]["template"]["metadata"] = {"labels": {"app": "other"}}
    result = plan(rig, other)
    assert result.exit_code == 2
    (line,) = problems(result)
    assert "plan.yaml: document 1 (Deployment " in line
    assert "field is immutable; leave that field as it is" in line


def test_other_kinds_are_left_out(rig: Rig) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}
    result = plan(rig, owner("ReplicaSet"), service, service)
    assert result.exit_code == 0
    assert problems(result) == ["oarlock: left out, as no controller of oarlock looks after them: Service (2)"]


def test_no_turn_is_taken_over_owners_of_others(rig: Rig) -> None:
    """Nothing works on this ReplicaSet, and the plan is about another owner."""
    rig.cluster.create(owner("ReplicaSet", "other", replicas=2))
    (found,) = facts(rig, owner("Deployment", replicas=1))
    assert [name[:3] for name in acts(found, "create")] == ["web"]


@pytest.mark.parametrize("name", ["batch", "platform", "shop"])
def test_the_examples(rig: Rig, name: str) -> None:
    """Each of their owners would come to rest with pods that are available."""
    result = call(
        *("plan", "-f", str(ROOT / "examples" / f"{name}.yaml"), "-o", "json"),
        *("--kubeconfig", str(rig.cluster.kubeconfig)),
    )
    assert result.exit_code == 0, result.stderr
    for each in json.loads(result.stdout)["plans"]:
        assert each["rests"], each
        assert each["ends"]["pods"] == each["ends"]["available"]


def test_without_the_right_to_write_own_defaults_are_used(rig: Rig) -> None:
    """The plan is the same, and says what it could not ask."""
    rig.cluster.create(owner("Deployment", replicas=2))
    changed = owner("Deployment", replicas=3, image="nginx:2")
    (asked,) = facts(rig, changed)
    with rig.everywhere.fault(403, verb=["patch", "create"]):
        (own,) = facts(rig, changed)
    assert (asked["asked"], own["asked"]) == (True, False)
    assert own["changes"] == asked["changes"]
    assert acts(own, "create", "ReplicaSet") == acts(asked, "create", "ReplicaSet")
    assert "may not patch deployments" in own["warnings"][0]


def test_a_namespace_that_does_not_exist_yet(rig: Rig) -> None:
    made = owner("ReplicaSet", replicas=1)
    made["metadata"]["namespace"] = "not-there"
    (found,) = facts(rig, made)
    assert found["warnings"][0].startswith("the namespace not-there does not exist yet:")
    assert len(acts(found, "create")) == 1


def test_a_quota_that_refuses_pods(rig: Rig) -> None:
    quota: Obj = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    rig.cluster.create({**quota, "spec": {"hard": {"pods": "0"}}})
    rig.cluster.wait("resourcequota/none", lambda found: found.get("status", {}).get("hard"))
    (found,) = facts(rig, owner("ReplicaSet", replicas=1))
    assert found["pod_admission"]["admitted"] is False
    assert "exceeded quota: none" in found["pod_admission"]["why"]


def test_names_that_others_have(rig: Rig) -> None:
    """Of a pod, and of a ReplicaSet."""
    rig.cluster.create(owner("ReplicaSet", replicas=2))
    (free,) = facts(rig, owner("ReplicaSet", replicas=2))
    name = acts(free, "create")[0]
    spec = {"containers": [{"name": "a", "image": "x"}]}
    rig.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    (taken,) = facts(rig, owner("ReplicaSet", replicas=2))
    assert name not in acts(taken, "create")
    assert any(name in each for each in taken["warnings"])

    (free,) = facts(rig, owner("Deployment", "dep", replicas=1))
    (name,) = acts(free, "create", "ReplicaSet")
    rig.cluster.create(owner("ReplicaSet", name, replicas=0))
    (taken,) = facts(rig, owner("Deployment", "dep", replicas=1))
    assert name not in acts(taken, "create", "ReplicaSet")
    assert any(f"refused to create replicasets/{name}" in each for each in taken["warnings"])


def test_upstream_at_work_and_an_owner_above(rig: Rig) -> None:
    rig.cluster.create(owner("Deployment", replicas=1))
    meta = rig.cluster.get("deployment/web")["metadata"]
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": meta["uid"], "controller": True}
    below = owner("ReplicaSet", "web-1", replicas=0)
    below["metadata"]["ownerReferences"] = [reference]
    below["metadata"]["managedFields"] = []
    (above,) = facts(rig, below)
    assert any(each.startswith("Deployment web controls this ReplicaSet") for each in above["warnings"])

    made = {**below, "metadata": {**below["metadata"], "namespace": "x", "uid": "r", "resourceVersion": "1"}}
    fields = {"f:spec": {"f:selector": {}}}
    made["metadata"]["managedFields"] = [{"manager": "kube-controller-manager", "fieldsV1": fields}]
    made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    (line,) = of_upstream("Deployment", Read({"metadata": {"uid": meta["uid"]}}, {"replicasets": [made]}))
    assert line.startswith("kube-controller-manager created ReplicaSet x/web-1 of Deployment web")


def test_warnings(rig: Rig) -> None:
    (paused,) = facts(rig, owner("Deployment", paused=True))
    assert any("it is paused" in each for each in paused["warnings"])
    (left,) = facts(rig, owner("DaemonSet", updateStrategy={"type": "OnDelete"}))
    assert any("OnDelete" in each for each in left["warnings"])


def test_more_steps_than_are_played(rig: Rig) -> None:
    result = plan(rig, owner("DaemonSet"), more=("--steps", "1", "-o", "json"))
    (found,) = json.loads(result.stdout)["plans"]
    assert not found["rests"]
    assert "more would happen than was played: 1 steps" in found["warnings"][-1]


def test_no_server(rig: Rig, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(rig.cluster.kubeconfig.read_text().replace(rig.cluster.url, "http://127.0.0.1:9"))
    result = call("plan", "-f", rig.file(owner("ReplicaSet")), "--kubeconfig", str(config))
    assert result.exit_code == 1
    assert "cannot get replicasets" in result.stderr


def test_no_pod_is_asked_about_where_none_is_created(rig: Rig) -> None:
    assert pod_admission(None, "x", b"", "") == {"asked": False, "why": "no pod is created"}  # type: ignore[arg-type]
