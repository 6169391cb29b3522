"""Containers of a pod: names, images, ports, variables, mounts, resources.

Upstream: pkg/apis/core/validation/validation.go (validateContainers and what it calls). What only a real
kubelet could act upon (security contexts, probes, lifecycle) is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.text.quantities import parse_quantity
from oarlock.sandbox.apiserver.validation.values import (
    PORT_MAX,
    named,
    one_of,
    optionally_named,
    quantity_errors,
    unique,
    within,
)

Obj = dict[str, Any]

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("FallbackToLogsOnError", "File")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_ENV_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def containers_errors(spec: Obj, path: str) -> Iterator[FieldError]:
    """Both lists of containers of a defaulted pod spec."""
    containers: list[Obj] = spec.get("containers") or []
    init_containers: list[Obj] = spec.get("initContainers") or []
    if not containers:
        yield FieldError.required(f"{path}.containers")
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    for position, container in enumerate(containers):
        here = f"{path}.containers[{position}]"
        yield from _container_errors(container, volumes, here)
        if container.get("restartPolicy"):
            yield FieldError.forbidden(f"{here}.restartPolicy", "may not be set for non-init containers")
    for position, container in enumerate(init_containers):
        here = f"{path}.initContainers[{position}]"
        yield from _container_errors(container, volumes, here)
        if policy := container.get("restartPolicy"):
            yield from one_of(policy, ("Always",), f"{here}.restartPolicy")
    listed = [(f"{path}.containers[{i}].name", c.get("name")) for i, c in enumerate(containers)]
    listed += [(f"{path}.initContainers[{i}].name", c.get("name")) for i, c in enumerate(init_containers)]
    yield from unique(listed)
    yield from unique(_host_ports(containers, f"{path}.containers"))
    if spec.get("hostNetwork"):
        yield from _host_network_errors(containers, f"{path}.containers")


def _container_errors(container: Obj, volumes: set[str | None], path: str) -> Iterator[FieldError]:
    yield from named(container.get("name"), names.dns_label, f"{path}.name")
    image = container.get("image") or ""
    if not image:
        yield FieldError.required(f"{path}.image")
    elif image.strip() != image:
        yield FieldError.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from one_of(container.get("imagePullPolicy"), _PULL_POLICIES, f"{path}.imagePullPolicy")
    yield from one_of(container.get("terminationMessagePolicy"), _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy")
    for position, port in enumerate(container.get("ports") or ()):
        yield from _port_errors(port, f"{path}.ports[{position}]")
    ports = enumerate(container.get("ports") or ())
    yield from unique((f"{path}.ports[{position}].name", port.get("name")) for position, port in ports)
    for position, variable in enumerate(container.get("env") or ()):
        yield from _env_errors(variable, f"{path}.env[{position}]")
    mounts: set[str] = set()
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        yield from _mount_errors(mount, volumes, mounts, f"{path}.volumeMounts[{position}]")
    if resources := container.get("resources"):
        yield from _resources_errors(resources, f"{path}.resources")


def _port_errors(port: Obj, path: str) -> Iterator[FieldError]:
    yield from optionally_named(port.get("name"), names.port_name, f"{path}.name")
    number = port.get("containerPort")
    if not number:
        yield FieldError.required(f"{path}.containerPort")
    else:
        yield from within(number, 1, PORT_MAX, f"{path}.containerPort")
    if host_port := port.get("hostPort"):
        yield from within(host_port, 1, PORT_MAX, f"{path}.hostPort")
    yield from one_of(port.get("protocol"), _PROTOCOLS, f"{path}.protocol")


def _host_ports(containers: list[Obj], path: str) -> Iterator[tuple[str, str]]:
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports") or ()):
            if host_port := port.get("hostPort"):
                where = f"{path}[{i}].ports[{j}].hostPort"
                yield where, f"{port.get('protocol')}/{port.get('hostIP', '')}/{host_port}"


def _host_network_errors(containers: list[Obj], path: str) -> list[FieldError]:
    return [
        FieldError.invalid(
            f"{path}[{i}].ports[{j}].containerPort",
            port.get("containerPort"),
            "must match `hostPort` when `hostNetwork` is true",
        )
        for i, container in enumerate(containers)
        for j, port in enumerate(container.get("ports") or ())
        if port.get("hostPort") != port.get("containerPort")
    ]


def _env_errors(variable: Obj, path: str) -> Iterator[FieldError]:
    yield from named(variable.get("name"), names.env_name, f"{path}.name")
    source = variable.get("valueFrom")
    if source is None:
        return
    given = [field for field in _ENV_SOURCES if source.get(field) is not None]
    if not given:
        yield FieldError.invalid(
            f"{path}.valueFrom",
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        )
    elif variable.get("value"):
        yield FieldError.invalid(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield FieldError.invalid(f"{path}.valueFrom", "", "may not have more than one field specified at a time")


def _mount_errors(mount: Obj, volumes: set[str | None], mounts: set[str], path: str) -> Iterator[FieldError]:
    name, mount_path = mount.get("name"), mount.get("mountPath")
    if not name:
        yield FieldError.required(f"{path}.name")
    elif name not in volumes:
        yield FieldError.not_found(f"{path}.name", name)
    if not mount_path:
        yield FieldError.required(f"{path}.mountPath")
    elif mount_path in mounts:
        yield FieldError.invalid(f"{path}.mountPath", mount_path, "must be unique")
    else:
        mounts.add(mount_path)


def _resources_errors(resources: Obj, path: str) -> list[FieldError]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    errors = quantity_errors(limits, f"{path}.limits") + quantity_errors(requests, f"{path}.requests")
    if errors:
        return errors
    for resource, amount in requests.items():
        limit = limits.get(resource)
        if limit is not None and parse_quantity(amount) > parse_quantity(limit):
            errors.append(
                FieldError.invalid(
                    f"{path}.requests",
                    str(amount),
                    f"must be less than or equal to {resource} limit of {limit}",
                )
            )
    return errors
