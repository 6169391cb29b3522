"""A CustomResourceDefinition to begin with, and what a test changes of it."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
NAME = "widgets.example.com"

SPEC: Obj = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 0},
        "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
        "hosts": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}, "weight": {"type": "integer"}},
            },
        },
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def schema(spec: Obj | None = None, **more: Obj) -> Obj:
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "properties": {"spec": spec or SPEC, "status": status, **more}}


def version(name: str = "v1", spec: Obj | None = None, *, storage: bool = True, **changes: Any) -> Obj:
    """Served, with a status and a scale of its own."""
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema(spec)},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.size",
                "labelSelectorPath": ".status.selector",
            },
        },
        **changes,
    }


def definition(*versions: Obj, **spec: Any) -> Obj:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": list(versions) or [version()],
            **spec,
        },
    }


def widget(name: str = "a", **spec: Any) -> Obj:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }
