"""A real kubectl, an embedded API server in a process of its own, and objects to give to them.

Every kubectl on the PATH is used, and those named in OARLOCK_KUBECTLS (paths joined by `:`), so that an old and
a new client can be tried side by side. Without any: skipped, and failed where CI is set.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT, THRIFTY_GO

MANIFESTS = ROOT.parent / "shared" / "manifests"
WAIT_S = 60.0


def kubectls() -> list[str]:
    named = [path for path in os.environ.get("OARLOCK_KUBECTLS", "").split(":") if path]
    found = shutil.which("kubectl")
    return named + ([found] if found else [])


BINARIES = kubectls()
KUBECTL = [
    pytest.mark.kubectl,
    pytest.mark.skipif(not BINARIES and not os.environ.get("CI"), reason="there is no kubectl here"),
]


@dataclass
class Kubectl:
    """One client, and a namespace of its own; with an empty one, objects go where they say themselves."""

    binary: str
    kubeconfig: Path
    home: Path
    namespace: str

    def command(self, *args: str) -> list[str]:
        where = ["-n", self.namespace] if self.namespace else []
        return [self.binary, "--kubeconfig", str(self.kubeconfig), *where, *args]

    def env(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], **THRIFTY_GO}

    def run(self, *args: str, stdin: str | None = None, code: int = 0) -> str:
        """What the command prints; it must end with `code`."""
        done = subprocess.run(
            self.command(*args),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            env=self.env(),
            check=False,
        )
        assert done.returncode == code, f"kubectl {' '.join(args)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *args: str) -> Any:
        return json.loads(self.run(*args, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> str:
        return self.run("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))


def serving(folder: Path, *args: str) -> Iterator[Path]:
    """A server in a process of its own; its kubeconfig."""
    process = subprocess.Popen(
        [sys.executable, "-m", "oarlock.sandbox.apiserver", "--state-dir", str(folder), *args],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        yield Path(ready["kubeconfig"])
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0


def replicaset(name: str = "web", replicas: int = 3, image: str = "nginx:1") -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}},
        },
    }


def pod(name: str, owner: dict[str, Any] | None = None, **labels: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "labels": labels}
    if owner is not None:
        meta["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def eventually(client: Kubectl, expected: str, *args: str) -> None:
    """Until the command prints exactly `expected`."""
    deadline_s = time.monotonic() + WAIT_S
    while (shown := client.run(*args).strip()) != expected:
        assert time.monotonic() < deadline_s, f"{args}: {shown!r} instead of {expected!r}"
        time.sleep(0.05)
