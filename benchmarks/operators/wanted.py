"""The objects of the comparison as JSON: a Pair, its two children, and the definition of the kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oarlock.cluster.resources import Resource

GROUP = "bench.example.com"
PAIRS = Resource(f"{GROUP}/v1", "pairs", "Pair")
CONFIGMAPS = Resource("v1", "configmaps", "ConfigMap")
SERVICES = Resource("v1", "services", "Service")
DEFINITIONS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", False)
LABEL = "bench.example.com/pair"


def pair(name: str, greeting: str = "hello") -> dict[str, Any]:
    return {"apiVersion": PAIRS.api_version, "kind": "Pair", "metadata": {"name": name}, "spec": {"greeting": greeting}}


def children_of(name: str, greeting: str) -> list[dict[str, Any]]:
    """Both bear the name of their Pair, so no kill makes a second one under another name."""

    def meta() -> dict[str, Any]:
        return {"name": name, "labels": {LABEL: name}}

    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(), "data": {"greeting": greeting}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta(),
            "spec": {"selector": {LABEL: name}, "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}]},
        },
    ]


def definition(plural: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A definition whose status takes anything: kopf keeps its progress there."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "status": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
