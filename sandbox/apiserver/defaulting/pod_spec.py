"""Defaults of a pod spec, in a pod or in a template.

Upstream: pkg/apis/core/v1/defaults.go and pkg/apis/core/v1/zz_generated.defaults.go. What is handed in is not
changed; a spec that lacks nothing comes back as the very same object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Obj = dict[str, Any]

_MODE: Final = 420  # 0644
_PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_SPEC: Final[Obj] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
_CONTAINER: Final[Obj] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def with_defaults(obj: Obj, defaults: Obj) -> Obj:
    """`obj` with what it lacks of `defaults`; itself if it lacks nothing. Null and "" count as absent."""
    if all(obj.get(field) not in (None, "") for field in defaults):
        return obj
    filled = {field: value for field, value in obj.items() if value is not None and value != ""}
    return {**obj, **defaults, **filled}


def each(obj: Obj, field: str, change: Callable[[Obj], Obj]) -> Obj:
    """`obj` with `change` made to every element of the list `field`; itself if nothing changed."""
    items = obj.get(field)
    if not items:
        return obj
    changed = [change(item) for item in items]
    if all(new is old for new, old in zip(changed, items, strict=True)):
        return obj
    return {**obj, field: changed}


def inside(obj: Obj, field: str, change: Callable[[Obj], Obj]) -> Obj:
    """`obj` with `change` made to the object in `field`; itself if there is none or nothing changed."""
    old = obj.get(field)
    new = change(old) if old is not None else None
    return obj if new is old else {**obj, field: new}


def default_pod_spec(spec: Obj) -> Obj:
    """The spec of a pod or of a template with everything filled in that both share."""
    spec = with_defaults(spec, _SPEC)
    host_network = bool(spec.get("hostNetwork"))
    for field in _CONTAINER_LISTS:
        spec = each(spec, field, lambda container: _container(container, host_network))
    return each(spec, "volumes", _volume)


def image_pull_policy(image: str) -> str:
    """Always for a moving tag, IfNotPresent for a fixed tag or a digest."""
    # What follows the colon of a digest is never "latest" either.
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _container(container: Obj, host_network: bool) -> Obj:
    container = with_defaults(container, _CONTAINER)
    if not container.get("imagePullPolicy"):
        container = {**container, "imagePullPolicy": image_pull_policy(container.get("image") or "")}
    container = each(container, "ports", lambda port: _port(port, host_network))
    container = each(container, "env", _env)
    for field in _PROBES:
        container = inside(container, field, _probe)
    return container


def _port(port: Obj, host_network: bool) -> Obj:
    port = with_defaults(port, {"protocol": "TCP"})
    if host_network and not port.get("hostPort"):
        port = {**port, "hostPort": port.get("containerPort", 0)}
    return port


def _env(variable: Obj) -> Obj:
    return inside(variable, "valueFrom", _with_field_ref)


def _probe(probe: Obj) -> Obj:
    if not all(probe.get(field) for field in _PROBE):  # 0 is no number of seconds or tries
        probe = {**probe, **_PROBE, **{field: value for field, value in probe.items() if value}}
    probe = inside(probe, "httpGet", lambda http: with_defaults(http, {"path": "/", "scheme": "HTTP"}))
    return inside(probe, "grpc", lambda grpc: grpc if "service" in grpc else {**grpc, "service": ""})


def _volume(volume: Obj) -> Obj:
    sources = [field for field, value in volume.items() if field != "name" and value is not None]
    if not sources:
        return {**volume, "emptyDir": {}}
    source = sources[0]
    value = volume[source]
    if not isinstance(value, dict):
        return volume
    if source in ("secret", "configMap"):
        filled = with_defaults(value, {"defaultMode": _MODE})
    elif source == "downwardAPI":
        filled = each(with_defaults(value, {"defaultMode": _MODE}), "items", _with_field_ref)
    elif source == "projected":
        filled = each(with_defaults(value, {"defaultMode": _MODE}), "sources", _projected)
    elif source == "hostPath":
        filled = value if "type" in value else {**value, "type": ""}
    else:
        return volume
    return volume if filled is value else {**volume, source: filled}


def _with_field_ref(item: Obj) -> Obj:
    """A variable's source, or an item of a downward API volume: a reference to a field is of v1."""
    field = item.get("fieldRef")
    if not field or field.get("apiVersion"):
        return item
    return {**item, "fieldRef": {"apiVersion": "v1", **field}}


def _projected(source: Obj) -> Obj:
    if source.get("serviceAccountToken"):
        return inside(source, "serviceAccountToken", lambda token: with_defaults(token, {"expirationSeconds": 3600}))
    return inside(source, "downwardAPI", lambda downward: each(downward, "items", _with_field_ref))
