"""A website: a Deployment and a Service from twelve lines of YAML.

    oarlock dev examples/operators/website.py
    kubectl apply -f examples/operators/website.yaml

The function says what is wanted and does nothing. The fleet compares, applies what differs, and deletes what the
result no longer holds. Whatever somebody changes by hand is set right again.
"""

from typing import Annotated, Any

from msgspec import Meta

import oarlock

PORT = 80


class WebsiteSpec(oarlock.Struct):
    image: Annotated[str, Meta(min_length=1)]
    replicas: Annotated[int, Meta(ge=0, le=100)] = 1
    port: Annotated[int, Meta(ge=1, le=65535)] = 8080
    env: dict[str, str] = {}
    public: bool = True
    """Whether it has a Service."""


class WebsiteStatus(oarlock.Struct):
    observed_generation: int = 0
    ready: int = 0
    address: str = ""


@oarlock.resource(
    "example.com/v1",
    columns={"Image": "spec.image", "Wanted": "spec.replicas", "Ready": "status.ready", "Address": "status.address"},
)
class Website(oarlock.Object):
    """A web server with an address."""

    spec: WebsiteSpec
    status: WebsiteStatus | None = None


@oarlock.desired(Website, children=["apps/v1 Deployment", "v1 Service"])
def website(site: Website, children: oarlock.Children) -> oarlock.Result:
    wanted = [deployment(site)]
    if site.spec.public:
        wanted.append(service(site))
    running = children.get("Deployment", site.name) or {}
    status = WebsiteStatus(
        observed_generation=site.metadata.generation,
        ready=running.get("status", {}).get("readyReplicas", 0),
        address=f"http://{site.name}.{site.namespace}.svc" if site.spec.public else "",
    )
    return oarlock.Result(wanted, status=status)


def labels(site: Website) -> dict[str, str]:
    return {"app.kubernetes.io/name": "website", "app.kubernetes.io/instance": site.name}


def deployment(site: Website) -> dict[str, Any]:
    spec = site.spec
    container = {
        "name": "web",
        "image": spec.image,
        "ports": [{"containerPort": spec.port}],
        "env": [{"name": name, "value": value} for name, value in sorted(spec.env.items())],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": site.name, "labels": labels(site)},
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": labels(site)},
            "template": {"metadata": {"labels": labels(site)}, "spec": {"containers": [container]}},
        },
    }


def service(site: Website) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": site.name, "labels": labels(site)},
        "spec": {"selector": labels(site), "ports": [{"port": PORT, "targetPort": site.spec.port}]},
    }
