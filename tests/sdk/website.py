"""A controller of one's own, as a user would write it: a Website has a Deployment, a Service, and pages if it wants."""

from __future__ import annotations

from typing import Any

import msgspec

import oarlock


class Spec(oarlock.Struct):
    image: str
    replicas: int = 1
    pages: dict[str, str] | None = None


class Status(oarlock.Struct):
    ready: int = 0
    url: str = ""


@oarlock.resource("example.com/v1", short_name="web")
class Website(oarlock.Object):
    """A web site."""

    spec: Spec
    status: Status = msgspec.field(default_factory=Status)


@oarlock.desired(Website, children=["apps/v1 Deployment", "v1 Service", "v1 ConfigMap"])
def website(site: Website, children: oarlock.Children) -> oarlock.Result:
    """Pure: called without a cluster, too."""
    labels = {"site": site.name}
    wanted: list[dict[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": site.name, "labels": labels},
            "spec": {
                "replicas": site.spec.replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [
                            {"name": "web", "image": site.spec.image, "ports": [{"containerPort": 80}], "env": []}
                        ]
                    },
                },
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": site.name},
            "spec": {"selector": labels, "ports": [{"port": 80}]},
        },
    ]
    if site.spec.pages:
        wanted.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{site.name}-pages"},
                "data": site.spec.pages,
            }
        )
    deployment = children.get("Deployment", site.name) or {}
    ready = deployment.get("status", {}).get("readyReplicas", 0)
    return oarlock.Result(wanted, Status(ready=ready, url=f"http://{site.name}.{site.namespace}"))
