"""The `autoscaling/v1` Scale of custom resources, by the paths that their definition gives.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go, scaleFromCustomResource.
"""

from __future__ import annotations

from typing import Any

from oarlock.sandbox.apiserver.custom import json_path
from oarlock.sandbox.apiserver.custom.rules import CustomRules
from oarlock.sandbox.apiserver.errors import internal_error

Obj = dict[str, Any]

_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(rules: CustomRules, obj: Obj) -> Obj:
    """The Scale of `obj`, whose version has one. Raises ApiError 500 if its spec says no size."""
    paths = rules.scale
    assert paths is not None, "only a kind with a scale has this subresource"
    meta, replicas = obj["metadata"], json_path.first(paths.spec, obj)
    if replicas is None:
        raise internal_error(f'the spec replicas field "{paths.spec}" does not exist')
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in _METADATA if key in meta},
        "spec": {"replicas": replicas},
        "status": {
            "replicas": json_path.first(paths.status, obj) or 0,
            "selector": (json_path.first(paths.selector, obj) if paths.selector else None) or "",
        },
    }


def with_replicas(rules: CustomRules, obj: Obj, replicas: int) -> Obj:
    """`obj` with another size."""
    assert rules.scale is not None, "only a kind with a scale has this subresource"
    return json_path.with_value(obj, json_path.plain_fields(rules.scale.spec), replicas)
