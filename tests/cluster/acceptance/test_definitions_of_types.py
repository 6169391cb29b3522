"""The CustomResourceDefinitions that types make are accepted by the server, also by a real one."""

from __future__ import annotations

import pytest
import yaml

import oarlock
from oarlock.sdk.loading import load
from oarlock.sdk.types.crd import crd_of, crds_of, models_of
from tests import ROOT
from tests.cluster.acceptance.test_custom_resources import create, keeps_objects
from tests.e2e.e2e_kubectl import Kubectl, until
from tests.sdk.types_of_all_kinds import Thing

pytestmark = [pytest.mark.kubectl]
__all__ = ["keeps_objects"]
GROUP = Thing.kind.group
NAME = f"things.{GROUP}"


@pytest.fixture
def things(everywhere: Kubectl) -> None:
    made = crd_of(Thing)
    everywhere.run("create", "--validate=false", "-f", "-", stdin=yaml.safe_dump(made))
    everywhere.run("wait", "--for=condition=Established", f"crd/{NAME}", "--timeout=60s")
    until(lambda: NAME in everywhere.run("api-resources", "-o", "name"), 30, f"{NAME} is served")


@pytest.fixture(autouse=True)
def gone_afterwards(everywhere: Kubectl) -> None:
    everywhere.run("delete", "crd", NAME, "--ignore-not-found")


def test_it_is_established(things: None, everywhere: Kubectl) -> None:
    made = everywhere.json("get", "crd", NAME)
    conditions = {each["type"]: each["status"] for each in made["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert "NonStructuralSchema" not in conditions
    kept = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    said = crd_of(Thing)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert kept["required"] == said["required"]
    assert {name: part.get("default") for name, part in kept["properties"].items()} == {
        name: part.get("default") for name, part in said["properties"].items()
    }


def test_objects(keeps_objects: None, things: None, kubectl: Kubectl) -> None:
    thing = {"apiVersion": Thing.kind.api_version, "kind": "Thing", "metadata": {"name": "a"}}
    create(kubectl, {**thing, "spec": {"image": "nginx:1", "probes": [{"type": "tcp", "number": 80}], "mode": None}})
    spec = kubectl.json("get", "things", "a")["spec"]
    assert (spec["size"], spec["limit"], spec["probes"]) == ("small", "auto", [{"type": "tcp", "number": 80}])
    refused = {**thing, "metadata": {"name": "b"}, "spec": {"image": "nginx:1", "probes": [{"type": "tcp"}]}}
    assert "spec.probes[0]" in create(kubectl, refused, code=1)


def test_the_examples(everywhere: Kubectl) -> None:
    """What the six operators define is taken as well."""
    for file in sorted((ROOT / "examples" / "operators").glob("*.py")):
        try:
            definitions = load(str(file))
        except oarlock.BadDefinition:  # kopf's own, beside its port
            continue
        for made in crds_of(models_of(definitions)):
            everywhere.run("create", "--dry-run=server", "--validate=false", "-f", "-", stdin=yaml.safe_dump(made))
