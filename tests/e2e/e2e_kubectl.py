"""A real kubectl at an `oarlock up`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests import THRIFTY_GO
from tests.e2e import api_calls, e2e_helpers
from tests.e2e.e2e_helpers import RunningUp, oarlock

Obj = dict[str, Any]
WAIT_S = 60.0
PATIENCE = 4
"""How much longer than on a quiet machine anything may take: what is waited for is that it happens at all."""
NODES = 4
"""Of the `oarlock up` that tests of a module share."""


def until(happened: Callable[[], Any], limit_s: float, what: str) -> Any:
    """As e2e_helpers.until. `limit_s`: on a quiet machine."""
    return e2e_helpers.until(happened, PATIENCE * limit_s, what, pause_s=0.07)


def need_kubectl() -> None:
    """Skip where there is none, fail where CI is set."""
    if shutil.which("kubectl") is None:
        assert not os.environ.get("CI"), "CI is set, and there is no kubectl on PATH"
        pytest.skip("kubectl is not installed")


@dataclass(frozen=True)
class Kubectl:
    """``namespace``: where everything goes; "" where objects say so themselves."""

    kubeconfig: Path
    home: Path
    namespace: str = ""

    def inside(self, namespace: str, **labels: str) -> Kubectl:
        """The same in a namespace, which is made."""
        api_calls.create_namespace(self.kubeconfig, namespace, labels)
        return replace(self, namespace=namespace)

    def command(self, *arguments: str) -> list[str]:
        where = ["-n", self.namespace] if self.namespace else []
        return ["kubectl", *where, *arguments]

    @property
    def root(self) -> str:
        """What stands before every path of the server, which `--raw` leaves out: "" for most."""
        (cluster,) = yaml.safe_load(self.kubeconfig.read_text())["clusters"]
        return str(urlsplit(cluster["cluster"]["server"]).path)

    @property
    def environment(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig)}
        return {"PATH": os.environ["PATH"], **own, **THRIFTY_GO}

    def run(self, *arguments: str, stdin: str | None = None, code: int = 0) -> str:
        """What it prints on stdout; and on stderr, where it is to fail with ``code``."""
        done = subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=WAIT_S,
            check=False,
        )
        told = f"kubectl {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert done.returncode == code, told
        return done.stdout + (done.stderr if code else "")

    def json(self, *arguments: str) -> Any:
        """What it prints with `-o json`. Reads that suites make again and again are asked of the API server itself."""
        path = api_calls.path_of(self.namespace, arguments)
        return api_calls.read(self.kubeconfig, path) if path else json.loads(self.run(*arguments, "-o", "json"))

    def items(self, *arguments: str) -> list[Obj]:
        found: list[Obj] = self.json("get", *arguments)["items"]
        return found

    def apply(self, *objects: Obj) -> str:
        return self.run("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))


def kubectl_of(up: RunningUp, home: Path) -> Kubectl:
    return Kubectl(up.state.kubeconfig, home)


def nodes(up: RunningUp, *arguments: str) -> None:
    """`oarlock nodes ARGUMENTS`."""
    done = oarlock("nodes", *arguments, "--state-dir", str(up.state.root))
    assert done.returncode == 0, done.stderr


def controlled_by(pod: Obj) -> str:
    """uid of its controller, or ""."""
    refs = pod["metadata"].get("ownerReferences") or ()
    return next((ref["uid"] for ref in refs if ref.get("controller")), "")


def node_of(pod: Obj) -> str:
    """The node it is on, or the one it is made for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    (name,) = field["values"]
    return str(name)


QUICKLY = {"oarlock.io/sim-ready-after-ms": "50"}
NEVER_READY = {"oarlock.io/sim-never-ready": "true"}
HASH = "controller-revision-hash"


def template(name: str, image: str = "nginx:1", annotations: dict[str, str] | None = None, **spec: Any) -> Obj:
    """Of a pod labelled app=name that is ready soon."""
    container = {"name": "c", "image": image}
    return {
        "metadata": {"labels": {"app": name}, "annotations": QUICKLY if annotations is None else annotations},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec},
    }


def daemonset(name: str = "agent", image: str = "nginx:1", *, pod: Obj | None = None, **spec: Any) -> Obj:
    """``pod``: more of the pod's spec; ``spec``: more of the DaemonSet's."""
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(name, image, **(pod or {})), **spec},
    }


def rolling(**limits: Any) -> Obj:
    return {"type": "RollingUpdate", "rollingUpdate": limits}


def hashes(pods: list[Obj]) -> set[str]:
    return {pod["metadata"]["labels"][HASH] for pod in pods}


def uids(pods: list[Obj]) -> dict[str, str]:
    """Node -> uid of the pod there."""
    return {node_of(pod): pod["metadata"]["uid"] for pod in pods}
