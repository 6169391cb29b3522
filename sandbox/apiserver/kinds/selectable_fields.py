"""The fields that a fieldSelector may name, by kind, beyond metadata.name and metadata.namespace.

Upstream: the SelectableFields functions of pkg/registry and pkg/apis/core/v1/conversion.go.
"""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]


def pod_fields(obj: Obj) -> dict[str, str]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return {
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.restartPolicy": spec.get("restartPolicy", ""),
        "spec.schedulerName": spec.get("schedulerName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase", ""),
        "status.podIP": status.get("podIP", ""),
        "status.nominatedNodeName": status.get("nominatedNodeName", ""),
    }


def event_fields(obj: Obj) -> dict[str, str]:
    about = obj.get("involvedObject") or {}
    source = obj.get("source") or {}
    component = obj.get("reportingComponent") or source.get("component") or ""
    fields = {
        f"involvedObject.{part}": about.get(part, "")
        for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    }
    return fields | {
        "reason": obj.get("reason", ""),
        "reportingComponent": component,
        "source": source.get("component") or component,
        "type": obj.get("type", ""),
    }


def replica_fields(obj: Obj) -> dict[str, str]:
    return {"status.replicas": str((obj.get("status") or {}).get("replicas", 0))}


def node_fields(obj: Obj) -> dict[str, str]:
    return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}


def namespace_fields(obj: Obj) -> dict[str, str]:
    return {"status.phase": (obj.get("status") or {}).get("phase", "")}


def secret_fields(obj: Obj) -> dict[str, str]:
    return {"type": obj.get("type", "")}
