"""What a suite asks again and again, asked of the API server itself: to start kubectl for each costs ten times what the
answer does, of the CPU that the answer is waiting for.
"""

from __future__ import annotations

import asyncio
import json
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from oarlock.cluster.access import config
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.access.tls import tls_context

TIMEOUT_S = 60.0
_PATHS = {
    "pods": ("v1", "pods"),
    "rc": ("v1", "replicationcontrollers"),
    "rs": ("apps/v1", "replicasets"),
    "deploy": ("apps/v1", "deployments"),
    "ds": ("apps/v1", "daemonsets"),
    "controllerrevisions": ("apps/v1", "controllerrevisions"),
}


def path_of(namespace: str, arguments: tuple[str, ...]) -> str:
    """What `kubectl -n NAMESPACE ARGUMENTS` reads of these kinds: all, those with labels, or one. "" for all else."""
    if not namespace or len(arguments) < 2 or arguments[0] != "get" or arguments[1] not in _PATHS:
        return ""
    api_version, plural = _PATHS[arguments[1]]
    root = "api" if api_version == "v1" else "apis"
    path = f"/{root}/{api_version}/namespaces/{namespace}/{plural}"
    match arguments[2:]:
        case ():
            return path
        case ("-l", selector):
            return f"{path}?labelSelector={quote(selector)}"
        case (name,) if not name.startswith("-"):
            return f"{path}/{name}"
    return ""


def read(kubeconfig: Path, path: str) -> Any:
    """The answer, as kubectl prints it with `-o json`. Where there is none an assertion fails, as with kubectl."""
    return _as_printed(_call(kubeconfig, "GET", path))


def create_namespace(kubeconfig: Path, name: str, labels: dict[str, str]) -> None:
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    _call(kubeconfig, "POST", "/api/v1/namespaces", made)


def delete_namespace(kubeconfig: Path, name: str) -> None:
    """It goes later."""
    _call(kubeconfig, "DELETE", f"/api/v1/namespaces/{name}")


def _call(kubeconfig: Path, method: str, path: str, body: object = None) -> Any:
    cluster = _cluster(kubeconfig, kubeconfig.stat().st_mtime_ns)
    url, auth = urlsplit(cluster.server), cluster.credentials.current() or asyncio.run(cluster.credentials.fetch())
    if url.scheme == "https":
        context = tls_context(cluster.tls, auth.certificate_pem, auth.key_pem)
        connection: HTTPConnection = HTTPSConnection(url.netloc, timeout=TIMEOUT_S, context=context)
    else:
        connection = HTTPConnection(url.netloc, timeout=TIMEOUT_S)
    headers = {"Content-Type": "application/json", **dict(auth.headers)}
    try:
        connection.request(method, url.path + path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        said = answer.read()
    except (OSError, HTTPException) as error:
        raise AssertionError(f"{method} {path}: {error!r}") from error
    finally:
        connection.close()
    assert answer.status < 300, f"{method} {path}: {answer.status}\n{said.decode(errors='replace')}"
    return json.loads(said)


@lru_cache(maxsize=64)
def _cluster(kubeconfig: Path, changed_ns: int) -> ClusterConfig:
    """As the file was when it was changed last."""
    return config.load(kubeconfig)


def _as_printed(found: dict[str, Any]) -> dict[str, Any]:
    items = found.get("items")
    for each in [found] if items is None else items:
        each["metadata"].pop("managedFields", None)
        if items is not None:
            each |= {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
    return found
