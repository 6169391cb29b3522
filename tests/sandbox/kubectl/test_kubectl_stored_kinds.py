"""Kinds that are only stored: applied, read, changed and deleted like any other."""

from __future__ import annotations

import pytest

from tests.sandbox.kubectl.kubectl_harness import KUBECTL, Kubectl

pytestmark = KUBECTL

MADE: list[tuple[str, str, list[str]]] = [  # what kubectl itself writes, its short name, a row of the table
    ("job x --image=nginx:1", "job", ["x", "Running", "0/1"]),
    ("role x --verb=get --resource=pods", "role", ["x"]),
    ("rolebinding x --role=r --user=u --serviceaccount=n:a", "rolebinding", ["x", "Role/r"]),
    ("clusterrole oarlock:x --verb=get --resource=pods", "clusterrole", ["oarlock:x"]),
    ("clusterrolebinding oarlock:x --clusterrole=r --group=g", "clusterrolebinding", ["oarlock:x", "ClusterRole/r"]),
    ("poddisruptionbudget x --selector=a=b --min-available=50%", "pdb", ["x", "50%", "N/A", "0"]),
    ("priorityclass x --value=5", "pc", ["x", "5", "false"]),
]


@pytest.mark.parametrize(("command", "kind", "row"), MADE, ids=lambda value: value if isinstance(value, str) else "")
def test_life_of_an_object(kubectl: Kubectl, command: str, kind: str, row: list[str]) -> None:
    name = row[0]
    written = kubectl.run("create", *command.split(), "--dry-run=client", "-o", "yaml")
    assert "created" in kubectl.run("apply", "-f", "-", stdin=written)
    assert kubectl.run("get", kind, name, "--no-headers").split()[: len(row)] == row
    assert f"Name:  {name}".split() == kubectl.run("describe", kind, name).splitlines()[0].split()
    kubectl.run("label", kind, name, "a=b")
    assert kubectl.run("get", kind, "-l", "a=b", "-o", "name").rpartition("/")[2].strip() == name
    assert "deleted" in kubectl.run("delete", kind, name)
    assert "NotFound" in kubectl.run("get", kind, name, code=1)
