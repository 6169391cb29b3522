"""docs/run-operators.md: the command that removes a finalizer which no controller declares any more."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest

import oarlock
from oarlock.sdk.types.crd import crds_of
from oarlock.testing import Cluster
from tests import ROOT
from tests.e2e.e2e_helpers import environment

PAGE = (ROOT / "docs" / "run-operators.md").read_text()
OURS, THEIRS = "example.com/record", "example.com/other"


@oarlock.resource("example.com/v1")
class Record(oarlock.Object):
    pass


def record(name: str, *finalizers: str) -> dict[str, Any]:
    meta = {"name": name, **({"finalizers": [*finalizers]} if finalizers else {})}
    return {"apiVersion": "example.com/v1", "kind": "Record", "metadata": meta}


@pytest.mark.kubectl
@pytest.mark.skipif(not (shutil.which("kubectl") and shutil.which("jq")), reason="kubectl and jq are not installed")
def test_a_finalizer_that_is_no_longer_declared_is_removed() -> None:
    (command,) = re.findall(r"^    (kubectl get records .*\n(?:    .*\n)+)", PAGE, flags=re.MULTILINE)
    with Cluster(controllers="") as cluster:
        (definition,) = crds_of([Record])
        cluster.create(definition)
        cluster.wait("customresourcedefinitions/records.example.com")
        cluster.create(record("a", THEIRS, OURS))
        cluster.create(record("b"))
        cluster.create(record("c", OURS))
        cluster.delete("records/c")
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            env=environment(KUBECONFIG=str(cluster.kubeconfig)),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        left = {each["metadata"]["name"]: each["metadata"].get("finalizers", []) for each in cluster.list("records")}
        assert left == {"a": [THEIRS], "b": []}
