"""What is fit to be applied, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarlock.controllers.registry import QUEUE_OF_KIND
from oarlock.sandbox.manifests.checks import check
from oarlock.sandbox.manifests.documents import parse, read_all
from oarlock.sandbox.manifests.mends import SPEC_FIELDS
from tests import ROOT
from tests.cli.cli_helpers import REPLICASET

MANIFESTS = ROOT.parent / "shared" / "manifests"


def test_objects_that_name_no_namespace_get_the_given_one() -> None:
    text = REPLICASET + "---\n" + REPLICASET.replace("name: web", "name: web\n  namespace: shop")
    found = check(parse(text.encode(), "f"), namespace="mine")
    assert [item.title for item in found.items] == ["ReplicaSet mine/web", "ReplicaSet shop/web"]
    assert found.problems == found.notes == []


def test_what_the_document_says_is_applied_without_the_servers_defaults() -> None:
    (item,) = check(parse(REPLICASET.encode(), "f")).items
    assert "terminationGracePeriodSeconds" not in item.obj["spec"]["template"]["spec"]
    assert "status" not in item.obj


def test_kinds_without_a_controller_are_said_in_one_line() -> None:
    text = "".join(
        f"---\napiVersion: v1\nkind: {k}\nmetadata: {{name: x}}\n" for k in ("ConfigMap", "ServiceAccount", "Namespace")
    )
    found = check(parse(text.encode(), "f"))
    assert found.notes == ["stored, but no controller acts on them yet: ConfigMap, ServiceAccount"]
    assert len(found.items) == 3


def test_unknown_kinds_can_be_left_out() -> None:
    text = REPLICASET + ("---\n" + REPLICASET.replace("ReplicaSet", "CloneSet")) * 2
    found = check(parse(text.encode(), "f"), skip_unknown=True)
    assert [item.title for item in found.items] == ["ReplicaSet default/web"]
    assert found.notes == ["left out, because these kinds are not served here: apps/v1 CloneSet (2)"]
    assert found.problems == []


def test_every_kind_with_a_controller_has_its_fields_listed() -> None:
    assert SPEC_FIELDS.keys() == QUEUE_OF_KIND.keys()


@pytest.mark.parametrize(
    ("kind", "field", "meant"),
    [
        ("DaemonSet", "updateStrtegy", "did you mean updateStrategy?"),
        ("DaemonSet", "replicas", "known are selector, template, updateStrategy"),
        ("ReplicationController", "minReadySecond", "did you mean minReadySeconds?"),
    ],
)
def test_slips_of_the_pen(kind: str, field: str, meant: str) -> None:
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    template = "{metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}"
    selector = "{app: x}" if version == "v1" else "{matchLabels: {app: x}}"
    text = f"""\
apiVersion: {version}
kind: {kind}
metadata: {{name: x}}
spec:
  selector: {selector}
  template: {template}
"""
    assert check(parse(text.encode(), "f")).problems == []
    (problem,) = check(parse(f"{text}  {field}: 1\n".encode(), "f")).problems
    assert problem.startswith(f"f:7: document 1 ({kind} default/x): spec.{field}: unknown field; {meant}")


def test_another_groups_kind_of_the_same_name_is_unknown_not_misspelt() -> None:
    found = check(parse(b"apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: x}", "f"))
    assert "this kind is not served here" in found.problems[0]


def test_the_examples_are_fit_and_real_looking() -> None:
    documents, problems = read_all([str(ROOT / "examples")])
    found = check(documents)
    assert problems == found.problems == found.notes == []
    assert {item.kind.name for item in found.items} == {"Namespace", *QUEUE_OF_KIND}
    sets = [item for item in found.items if item.kind.name == "ReplicaSet"]
    assert len({item.namespace for item in sets}) == 2
    limits = [
        item.obj["spec"]["updateStrategy"]["rollingUpdate"] for item in found.items if item.kind.name == "DaemonSet"
    ]
    assert sorted(any(key == "maxSurge" for key in each) for each in limits) == [False, True]
    assert max(item.obj["spec"]["replicas"] for item in sets) == 200


@pytest.mark.skipif(not MANIFESTS.is_dir(), reason="the manifests of other projects are not here")
@pytest.mark.parametrize("path", sorted(MANIFESTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_manifests_of_other_projects(path: Path) -> None:
    documents, problems = read_all([str(path)])
    found = check(documents)
    assert problems == found.problems == []
    if path.name.startswith("rs-"):
        assert [item.kind.name for item in found.items] == ["ReplicaSet"]
