"""The objects that these tests bring."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]


def workload(kind: str = "Deployment", name: str = "web", replicas: int | None = 3, **spec: Any) -> Obj:
    """A workload with pods labelled app=<name>; ``spec`` adds fields beside replicas."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    whole: Obj = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    if replicas is not None:
        whole["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole}
