"""Writes to the API server of an `oarlock up`, as its user sends them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

FAULTS = "/_oarlock/faults"
MERGE = "application/merge-patch+json"


class Api:
    """One connection; for one thread."""

    def __init__(self, url: str, token: str) -> None:
        self._at, self._token = urlsplit(url).netloc, token
        self._connection = http.client.HTTPConnection(self._at, timeout=30)

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> dict[str, Any]:
        """The object that is answered. Raises RuntimeError with what the server says where it refuses."""
        headers = {"Content-Type": content_type, "Authorization": f"Bearer {self._token}"}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        told: dict[str, Any] = json.loads(answer.read())
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {told.get('message', told)}")
        return told

    def faults(self, seed: int, faults: Sequence[dict[str, Any]]) -> None:
        """From now on exactly these faults are in force."""
        self.call("PUT", FAULTS, {"seed": seed, "faults": list(faults)})

    def scale(self, namespace: str, name: str, replicas: int) -> None:
        """The size of a ReplicaSet."""
        path = f"/apis/apps/v1/namespaces/{namespace}/replicasets/{name}"
        self.call("PATCH", path, {"spec": {"replicas": replicas}}, MERGE)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def replicaset(namespace: str, name: str, replicas: int) -> dict[str, Any]:
    """A ReplicaSet with a plain template."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}
