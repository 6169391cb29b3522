"""The chart runs controllers of one's own instead of the built-in ones: from an image, or from a ConfigMap."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chart.engine import NEEDED, Obj, Refused, Rendered, merged, render

ACCOUNTS = {"create": False, "ingestor": "site-ingestor", "worker": "site-worker"}


def rendered(**operator: str) -> Rendered:
    return render(merged(NEEDED, {"operator": operator, "serviceAccounts": ACCOUNTS}))


def pod(found: Rendered, role: str) -> Obj:
    spec: Obj = found.one("StatefulSet", f"oarlock-{role}")["spec"]["template"]["spec"]
    return spec


def environment(found: Rendered, role: str) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in pod(found, role)["containers"][0]["env"]}


@pytest.mark.parametrize("role", ["ingestor", "worker"])
def test_from_an_image(role: str) -> None:
    found = rendered(file="/app/site.py")
    assert environment(found, role)["OARLOCK_OPERATOR"] == "/app/site.py"
    assert environment(found, role)["OARLOCK_CONTROLLERS"] == "*"
    assert pod(found, role)["serviceAccountName"] == f"site-{role}"
    assert "operator" not in {each["name"] for each in pod(found, role)["volumes"]}


@pytest.mark.parametrize("role", ["ingestor", "worker"])
def test_from_a_config_map(role: str) -> None:
    found = rendered(file="site.py", configMap="site-operator")
    assert environment(found, role)["OARLOCK_OPERATOR"] == "/etc/oarlock/operator/site.py"
    (mount,) = [each for each in pod(found, role)["containers"][0]["volumeMounts"] if each["name"] == "operator"]
    assert mount == {"name": "operator", "mountPath": "/etc/oarlock/operator", "readOnly": True}
    (volume,) = [each for each in pod(found, role)["volumes"] if each["name"] == "operator"]
    assert volume["configMap"] == {"name": "site-operator"}


def test_no_role_of_the_built_in_controllers() -> None:
    found = rendered(file="/app/site.py")
    assert not [each for each in found.objects if each["kind"] in ("ClusterRole", "Role")]
    assert [each["metadata"]["name"] for each in found.of("ServiceAccount")] == ["oarlock-redis"]
    assert "kube-controller-manager" not in found.notes


REFUSED = {
    "accounts": ({"operator": {"file": "/app/site.py"}}, "serviceAccounts: with operator.file they come from"),
    "no file": ({"operator": {"configMap": "site"}}, "operator.file is missing"),
    "shards": (
        {"operator": {"file": "a.py"}, "serviceAccounts": ACCOUNTS, "shards": 2},
        "the fleet of operator.file is not divided",
    ),
    "keda": (
        {"operator": {"file": "a.py"}, "serviceAccounts": ACCOUNTS, "worker": {"autoscaling": {"mode": "keda"}}},
        "keda asks for the built-in controllers' queues",
    ),
    "twice": ({"settings": {"OPERATOR": "a.py"}}, "settings.OPERATOR is set by another value of the chart"),
}


@pytest.mark.parametrize(("values", "line"), REFUSED.values(), ids=list(REFUSED))
def test_refused(values: dict[str, Any], line: str) -> None:
    with pytest.raises(Refused, match=line):
        render(merged(NEEDED, values))
