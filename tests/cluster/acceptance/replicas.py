"""What the tests of ReplicaSets and ReplicationControllers share: both behave alike, so both are asked the same."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.e2e_kubectl import WAIT_S, Kubectl, Obj, template, until


@dataclass(frozen=True)
class Kind:
    """One of the two, as kubectl and the API call it."""

    short: str
    name: str
    api_version: str
    path: str

    def raw(self, kubectl: Kubectl, name: str = "web", subresource: str = "") -> str:
        """Path of an object in the test's namespace."""
        return f"{self.path.format(kubectl.namespace)}/{name}{'/' if subresource else ''}{subresource}"

    def make(self, name: str = "web", replicas: int = 2, *, app: str = "", pod: Obj | None = None, **spec: Any) -> Obj:
        """Selects app=`app` (else its name); `pod` is its template."""
        labels = {"app": app or name}
        selector = {"matchLabels": labels} if self.short == "rs" else labels
        made = template(app or name) if pod is None else pod
        return {
            "apiVersion": self.api_version,
            "kind": self.name,
            "metadata": {"name": name, "labels": labels},
            "spec": {"replicas": replicas, "selector": selector, "template": made, **spec},
        }


RS = Kind("rs", "ReplicaSet", "apps/v1", "/apis/apps/v1/namespaces/{}/replicasets")
RC = Kind("rc", "ReplicationController", "v1", "/api/v1/namespaces/{}/replicationcontrollers")


def both(of_rs: str, of_rc: str) -> pytest.MarkDecorator:
    """A test for either kind, with the number of the case in its inventory."""
    return pytest.mark.parametrize("kind", [pytest.param(RS, id=f"{of_rs} rs"), pytest.param(RC, id=f"{of_rc} rc")])


def pods_of(kubectl: Kubectl, name: str = "web") -> list[Obj]:
    """Those that bear its label and are not on their way out."""
    return [pod for pod in kubectl.items("pods", "-l", f"app={name}") if not pod["metadata"].get("deletionTimestamp")]


def uids(pods: list[Obj]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def status(kubectl: Kubectl, kind: Kind, name: str = "web") -> dict[str, Any]:
    """Its status; empty while it speaks of an earlier generation."""
    found = kubectl.json("get", kind.short, name)
    said: dict[str, Any] = found.get("status") or {}
    return said if said.get("observedGeneration") == found["metadata"]["generation"] else {}


def condition_of(kubectl: Kubectl, kind: str, name: str = "web") -> Obj:
    """The ReplicaSet's condition of that kind; empty where a status of the present generation has none."""
    conditions: list[Obj] = status(kubectl, RS, name).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), {})


def ready(kubectl: Kubectl, kind: Kind, count: int, name: str = "web", limit_s: float = 30) -> list[Obj]:
    """Wait until the status says that so many pods are there, ready and available. Returns those with its label."""

    def is_so() -> bool:
        said = status(kubectl, kind, name)
        fields = ("replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas")
        return bool(said) and [said.get(field, 0) for field in fields] == [count] * 4

    until(is_so, limit_s, f"{count} ready pods of {name}")
    return pods_of(kubectl, name)


def bare_pod(name: str, app: str = "web", *refs: Obj, annotations: dict[str, str] | None = None, **labels: str) -> Obj:
    """One that somebody made by hand."""
    made = template(app)
    meta = {
        "name": name,
        "labels": {"app": app, **labels},
        "annotations": {**made["metadata"]["annotations"], **(annotations or {})},
    }
    if refs:
        meta["ownerReferences"] = list(refs)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made["spec"]}


def change_status(kubectl: Kubectl, raw: str, change: Callable[[Obj], Obj]) -> None:
    """Replace the status subresource of what `raw` names; again when somebody else came before.

    By `replace --raw`: a kubectl older than 1.24 knows no --subresource.
    """
    client = Kubectl(kubectl.kubeconfig, kubectl.home)

    def written() -> bool:
        found = json.loads(client.run("get", "--raw", raw))
        found["status"] = change(found.get("status") or {})
        said = subprocess.run(
            client.command("replace", "--raw", f"{raw}/status", "-f", "-"),
            input=json.dumps(found),
            capture_output=True,
            text=True,
            env=client.environment,
            timeout=WAIT_S,
            check=False,
        )
        assert said.returncode == 0 or "Conflict" in said.stderr or "modified" in said.stderr, said.stderr
        return said.returncode == 0

    until(written, 15, f"the status of {raw} is written")


def pod_path(kubectl: Kubectl, pod: Obj | str) -> str:
    name = pod if isinstance(pod, str) else pod["metadata"]["name"]
    return f"/api/v1/namespaces/{kubectl.namespace}/pods/{name}"
