"""Every pod keeps to the restricted Pod Security Standard, and holds no more of the cluster than it uses.

Source: Kubernetes documentation, Pod Security Standards, profile "restricted".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chart.engine import CI_VALUES, Obj, Rendered, ci_values, render

BY_NAME = pytest.mark.parametrize("path", CI_VALUES, ids=lambda path: path.name.removesuffix("-values.yaml"))
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
HOST = {"hostNetwork", "hostPID", "hostIPC", "hostUsers", "hostAliases"}


def pods(rendered: Rendered) -> Iterator[tuple[str, Obj]]:
    found = rendered.of("StatefulSet")
    assert found
    for each in found:
        yield each["metadata"]["labels"]["app.kubernetes.io/component"], each["spec"]["template"]["spec"]


def containers(pod: Obj) -> list[Obj]:
    return [*pod["containers"], *pod.get("initContainers", [])]


@BY_NAME
def test_restricted(path: Path) -> None:
    for _, pod in pods(render(ci_values(path))):
        assert not HOST & pod.keys()
        own = pod["securityContext"]
        assert own["runAsNonRoot"] is True
        assert own["runAsUser"] > 0
        assert own["seccompProfile"] == {"type": "RuntimeDefault"}
        assert all(len(set(volume) & VOLUMES) == 1 for volume in pod["volumes"])
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "runAsNonRoot": True,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            }
            assert not any("hostPort" in port for port in container.get("ports", []))
            assert all(port["containerPort"] > 1_023 for port in container.get("ports", []))
            assert container["resources"]["requests"].keys() >= {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]


@BY_NAME
def test_a_token_only_where_the_cluster_is_asked(path: Path) -> None:
    rendered = render(ci_values(path))
    for role, pod in pods(rendered):
        assert pod["automountServiceAccountToken"] is (role in ("ingestor", "worker"))
        assert pod["enableServiceLinks"] is False
    assert all(each["automountServiceAccountToken"] is False for each in rendered.of("ServiceAccount"))
    accounts = [pod["serviceAccountName"] for _, pod in pods(rendered)]
    assert len(set(accounts)) == len(accounts)
    assert "default" not in accounts


@BY_NAME
def test_secrets_are_named_never_made(path: Path) -> None:
    """No password is in what is rendered: Secrets are read by the kubelet, and files of theirs by the group alone."""
    rendered = render(ci_values(path))
    assert not rendered.of("Secret")
    for _, pod in pods(rendered):
        for volume in pod["volumes"]:
            assert volume.get("secret", {"defaultMode": 0o440})["defaultMode"] == 0o440
        for container in containers(pod):
            for entry in container.get("env", []):
                if "PASSWORD" in entry["name"] or entry["name"].endswith("_AUTH"):
                    assert "secretKeyRef" in entry["valueFrom"]
            mounts = {mount["name"] for mount in container["volumeMounts"]}
            assert mounts <= {volume["name"] for volume in pod["volumes"]}


@BY_NAME
def test_time_to_drain(path: Path) -> None:
    """A worker drains for up to 25 s before it ends itself (workers/supervisor/supervisor.py)."""
    for role, pod in pods(render(ci_values(path))):
        assert role in ("redis", "board") or pod["terminationGracePeriodSeconds"] > 25
