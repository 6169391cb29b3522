"""The rendered permissions are those of rbac/, file by file; what is switched off is left out."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from oarlock.workers.process.kinds import controller_names
from tests.chart.engine import CHART, NEEDED, Obj, Rendered, merged, render

KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
WORKERS = tuple(controller_names())


def bare(each: Obj) -> Obj:
    """Without what only the chart adds: its labels, and that accounts hand out no token unasked."""
    metadata = {key: value for key, value in each["metadata"].items() if key != "labels"}
    return {
        key: value for key, value in {**each, "metadata": metadata}.items() if key != "automountServiceAccountToken"
    }


def permissions(rendered: Rendered) -> list[Obj]:
    return [bare(each) for each in rendered.by_file["rbac.yaml"]]


def names(found: list[Obj], kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in found if each["kind"] == kind}


@pytest.mark.parametrize("path", sorted((CHART / "rbac").glob("*.yaml")), ids=lambda path: path.name)
def test_equal_file_by_file(path: Any) -> None:
    rendered = permissions(render())
    for shipped in yaml.safe_load_all(path.read_text()):
        (same,) = [
            each
            for each in rendered
            if each["kind"] == shipped["kind"] and each["metadata"]["name"] == shipped["metadata"]["name"]
        ]
        assert same == shipped


def test_and_nothing_more() -> None:
    shipped = [each for path in (CHART / "rbac").glob("*.yaml") for each in yaml.safe_load_all(path.read_text())]
    assert len(permissions(render())) == len(shipped)
    everything = [each for each in render().objects if each["kind"] in KINDS]
    assert len(everything) == len([each for each in shipped if each["kind"] in KINDS])


@pytest.mark.parametrize("off", WORKERS)
def test_a_controller_that_is_off_leaves_its_rules_out(off: str) -> None:
    rendered = permissions(render(merged(NEEDED, {"controllers": {off: False}})))
    on = {f"oarlock-worker-{each}" for each in WORKERS if each != off}
    assert names(rendered, "ClusterRole") == names(rendered, "ClusterRoleBinding") == on | {"oarlock-ingestor"}


def test_bindings_follow_release_accounts_and_lease() -> None:
    values = merged(NEEDED, {"serviceAccounts": {"worker": "w"}, "lease": {"namespace": ""}})
    rendered = permissions(render(values, name="blue", namespace="fleet"))
    accounts = names(rendered, "ServiceAccount")
    assert accounts == {"blue-oarlock-ingestor", "w"}
    roles = {(each["kind"], each["metadata"]["name"]) for each in rendered if each["kind"] in ("Role", "ClusterRole")}
    for each in rendered:
        if each["kind"].endswith("Binding"):
            assert (each["roleRef"]["kind"], each["roleRef"]["name"]) in roles
            assert {(subject["name"], subject["namespace"]) for subject in each["subjects"]} <= {
                (name, "fleet") for name in accounts
            }
        if each["kind"] in ("Role", "RoleBinding"):
            assert each["metadata"]["namespace"] == "fleet"
    assert render(values, namespace="fleet").env("ingestor")["OARLOCK_LEASE_NAMESPACE"] == "fleet"


def test_pods_use_the_accounts_that_are_bound() -> None:
    for values in (
        {},
        {"serviceAccounts": {"ingestor": "i", "worker": "w"}},
        {"serviceAccounts": {"create": False, "worker": "w"}},
    ):
        rendered = render(merged(NEEDED, values))
        bound = {each["metadata"]["name"]: each["subjects"][0]["name"] for each in rendered.of("ClusterRoleBinding")}
        assert rendered.pod("ingestor")["serviceAccountName"] == bound["oarlock-ingestor"]
        assert rendered.pod("worker")["serviceAccountName"] == bound["oarlock-worker-replicaset"]


def test_roles_of_others() -> None:
    rendered = render(
        merged(NEEDED, {"rbac": {"create": False, "leaseRole": False}, "serviceAccounts": {"create": False}})
    )
    assert permissions(rendered) == []
    only_lease = permissions(render(merged(NEEDED, {"rbac": {"create": False}, "serviceAccounts": {"create": False}})))
    assert names(only_lease, "Role") == names(only_lease, "RoleBinding") == {"oarlock-lease"}
    assert len(only_lease) == 2
