"""A kubeconfig file for the embedded API."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import yaml

from oarlock.sandbox.apiserver.http.identity import IN_PATH
from oarlock.sandbox.host import write_file

_NAME = "oarlock"
_OF_A_PATH = re.compile(r"[\w.~=+-]+", re.ASCII)


def write_kubeconfig(
    path: Path, url: str, *, token: str | None = None, ca_file: Path | None = None, namespace: str = "default"
) -> None:
    """Write a kubeconfig with one cluster, user and context at `path`, in one step and for the owner only.

    `namespace`: the one that commands mean which name none.

    `ca_file`: the certificate to trust, copied into the file. Without TLS the token stands in the server's URL, too,
    if a path can hold it.
    """
    in_path = token and url.startswith("http:") and _OF_A_PATH.fullmatch(token)
    cluster = {"server": f"{url}{IN_PATH}{token}" if in_path else url}
    if ca_file is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca_file.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {"token": token} if token else {}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": namespace}}],
        "current-context": _NAME,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, yaml.safe_dump(config, sort_keys=False))
