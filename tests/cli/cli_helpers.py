"""Calling the command in this process, and manifests to call it with."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from oarlock.broker.values.events import Event
from oarlock.cli import cli
from oarlock.controllers.entries import Watched

REPLICASET = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web
spec:
  replicas: 3
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: c
        image: nginx
"""


def stored(resource: Watched[Any], obj: Any) -> Event:
    """An object as an ingestor puts it into the cache, at revision 10."""
    apart = resource.apart(obj)
    return Event(obj.key, "10", obj.uid, resource.encode(obj), apart=apart)


def call(*arguments: str, stdin: str | None = None, env: dict[str, str] | None = None) -> Result:
    """`oarlock ARGUMENTS` without the environment variables of whoever runs the tests."""
    clean = {"OARLOCK_REDIS_URL": "", "OARLOCK_STATE_DIR": "", "OARLOCK_KUBECONFIG": "", "KUBECONFIG": ""}
    return CliRunner().invoke(cli, list(arguments), input=stdin, env={**clean, **(env or {})})


def problems(result: Result) -> list[str]:
    """The lines on stderr."""
    return result.stderr.splitlines()
