"""The chart runs a fleet that writes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chart.engine import NEEDED, Refused, merged, render
from tests.chart.test_operator_values import environment, pod

ACCOUNTS = {"create": False, "ingestor": "oarlock-shadow-ingestor", "worker": "oarlock-shadow-worker"}
SHADOW = {"dryRun": {"fleetId": "shadow"}, "serviceAccounts": ACCOUNTS}


@pytest.mark.parametrize("role", ["ingestor", "worker"])
def test_every_process_runs_dry(role: str) -> None:
    found = render(merged(NEEDED, SHADOW))
    given = environment(found, role)
    assert (given["OARLOCK_DRY_RUN"], given["OARLOCK_FLEET_ID"]) == ("true", "shadow")
    assert pod(found, role)["serviceAccountName"] == f"oarlock-shadow-{role}"
    assert "OARLOCK_DRY_RUN" not in environment(render(NEEDED), role)


def test_it_brings_no_role() -> None:
    found = render(merged(NEEDED, SHADOW))
    assert not [each for each in found.objects if each["kind"] in ("ClusterRole", "Role")]
    assert "oarlock-dry-run" not in {each["metadata"]["name"] for each in render(NEEDED).of("ClusterRole")}


REFUSED = {
    "accounts": ({"dryRun": {"fleetId": "shadow"}}, "serviceAccounts: with dryRun.fleetId they come from"),
    "operator": (merged(SHADOW, {"operator": {"file": "/app/a.py"}}), "controllers of your own cannot run dry"),
    "shards": (merged(SHADOW, {"shards": 2}), "a fleet that runs dry is not divided"),
    "name": (merged(SHADOW, {"dryRun": {"fleetId": "oarlock"}}), "oarlock is the name of a fleet that works"),
    "keda": (merged(SHADOW, {"worker": {"autoscaling": {"mode": "keda"}}}), "with dryRun.fleetId use hpa or none"),
    "twice": (merged(SHADOW, {"settings": {"FLEET_ID": "other"}}), "settings.FLEET_ID: dryRun.fleetId names the fleet"),
}


@pytest.mark.parametrize(("values", "line"), REFUSED.values(), ids=list(REFUSED))
def test_refused(values: dict[str, Any], line: str) -> None:
    with pytest.raises(Refused, match=line):
        render(merged(NEEDED, values))
