"""What the chart has to say of each kind, since YAML derives nothing, held against the registry."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.process.kinds import controller_names, enabled_queues
from oarlock.workers.process.rights import DRY_RUN, grants
from tests.chart.engine import CHART, NEEDED, Refused, merged, render

NAMES = controller_names()
KEDA = {"worker": {"autoscaling": {"mode": "keda"}}}


def only(*on: str) -> dict[str, Any]:
    """Values under which these controllers are on and no others."""
    return {"controllers": {name: name in on for name in NAMES}}


def test_each_controller_has_a_switch_that_is_on() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert values["controllers"] == dict.fromkeys(NAMES, True)
    assert schema["properties"]["controllers"]["properties"] == {name: {"type": "boolean"} for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_the_queues_of_a_controller_scale_the_workers(name: str) -> None:
    """Those of its fan-outs too."""
    triggers = render(merged(NEEDED, KEDA, only(name))).one("ScaledObject")["spec"]["triggers"]
    found = {queue for each in triggers for queue in re.findall(r'(?:name|queue)="([^"]+)"', str(each["metadata"]))}
    assert found == set(enabled_queues(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_controller_brings_its_role(name: str) -> None:
    """The role's file is found by the name of the switch."""
    (kind,) = (each.flavour.kind for each in CONTROLLERS.values() if each.name == f"{name}-controller")
    assert kind.lower() == name
    roles = {each["metadata"]["name"] for each in render(merged(NEEDED, only(name))).of("ClusterRole")}
    assert {role for role in roles if role.startswith("oarlock-worker")} == {f"oarlock-worker-{name}"}


def test_the_files_of_roles() -> None:
    assert {path.name for path in (CHART / "rbac").glob("*.yaml")} == {*grants(), "bindings.yaml"} - {DRY_RUN}


def test_with_all_off_it_names_them() -> None:
    with pytest.raises(Refused, match=f"at least one of {', '.join(sorted(NAMES))} on"):
        render(merged(NEEDED, only()))
