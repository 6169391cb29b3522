"""Server-side apply, dry runs and diff by a real kubectl."""

from __future__ import annotations

import json

from tests.sandbox.kubectl.kubectl_harness import KUBECTL, Kubectl

pytestmark = KUBECTL

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '%s'}\n"


def managers(kubectl: Kubectl) -> list[tuple[str, str]]:
    obj = json.loads(kubectl.run("get", "configmap", "a", "-o", "json", "--show-managed-fields"))
    return [(each["manager"], each["operation"]) for each in obj["metadata"]["managedFields"]]


def data(kubectl: Kubectl) -> str:
    return kubectl.run("get", "configmap", "a", "-o", "jsonpath={.data.x}")


def test_apply_conflict_and_force(kubectl: Kubectl) -> None:
    apply = ["apply", "--server-side", "-f", "-"]
    assert "serverside-applied" in kubectl.run(*apply, stdin=CONFIG % 1)
    told = kubectl.run(*apply, "--field-manager=other", stdin=CONFIG % 2, code=1)
    assert 'conflict with "kubectl": .data.x' in told
    kubectl.run(*apply, "--field-manager=other", "--force-conflicts", stdin=CONFIG % 2)
    assert data(kubectl) == "2"
    assert managers(kubectl) == [("other", "Apply")]


def test_from_client_side_to_server_side(kubectl: Kubectl) -> None:
    """kubectl takes over the fields that it applied by patches."""
    kubectl.run("apply", "-f", "-", stdin=CONFIG % 1)
    assert managers(kubectl) == [("kubectl-client-side-apply", "Update")]
    kubectl.run("apply", "--server-side", "-f", "-", stdin=CONFIG % 2)
    assert data(kubectl) == "2"
    assert ("kubectl", "Apply") in managers(kubectl)


def test_dry_run_and_diff(kubectl: Kubectl) -> None:
    dry_run = ["apply", "--dry-run=server", "-f", "-"]
    assert "created (server dry run)" in kubectl.run(*dry_run, stdin=CONFIG % 1)
    kubectl.run("get", "configmap", "a", code=1)
    kubectl.run("apply", "-f", "-", stdin=CONFIG % 1)
    assert "configured (server dry run)" in kubectl.run(*dry_run, stdin=CONFIG % 2)
    assert data(kubectl) == "1"
    assert '+  x: "2"' in kubectl.run("diff", "-f", "-", stdin=CONFIG % 2, code=1)
    assert data(kubectl) == "1"
