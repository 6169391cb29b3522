"""The same operator for kopf, as its documentation writes such a one, with what speeds it up and a repeat needs.

Sync handlers with the official client, as in the walkthrough, in kopf's pool of threads. Its answers are not decoded
(`_preload_content=False`): nobody reads them. Events about handlers are not posted. A name that is taken is patched.
With GENERATED=1 the children have no name of their own, so that `kopf.adopt` gives them the Pair's as a prefix, which
is its default: what a kill does to those who rely on it.
"""

from __future__ import annotations

import os
from typing import Any

import kopf
import kubernetes

from benchmarks.operators.wanted import GROUP, children_of

GENERATED = os.environ.get("GENERATED") == "1"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.execution.max_workers = 32


@kopf.on.create(GROUP, "pairs")
@kopf.on.update(GROUP, "pairs")
def ensure(spec: Any, name: str, namespace: str, patch: Any, **_: Any) -> None:
    core = kubernetes.client.CoreV1Api()
    write = {
        "ConfigMap": (core.create_namespaced_config_map, core.patch_namespaced_config_map),
        "Service": (core.create_namespaced_service, core.patch_namespaced_service),
    }
    for child in children_of(name, spec["greeting"]):
        if GENERATED:
            del child["metadata"]["name"]
        kopf.adopt(child)
        create, change = write[child["kind"]]
        try:
            create(namespace, child, _preload_content=False)
        except kubernetes.client.ApiException as error:
            if error.status != 409:
                raise
            change(name, namespace, child, _preload_content=False)
    patch.status["ready"] = True
