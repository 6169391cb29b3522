"""Kinds that are stored and that no controller here acts on: what their authors get wrong, and what cannot change.

Upstream: pkg/apis/{core,apps,batch,networking,discovery,autoscaling,rbac,storage}/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.validation.metadata import IMMUTABLE
from oarlock.sandbox.apiserver.validation.other_kinds import job_errors
from oarlock.sandbox.apiserver.validation.replica_sets import selected_template_errors
from oarlock.sandbox.apiserver.validation.values import (
    PORT_MAX,
    named,
    not_negative,
    one_of,
    optionally_named,
    quantity_errors,
    unique,
    within,
)

Obj = dict[str, Any]

_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_MAX: Final = 253
_WHEN_SET: Final = "field is immutable when `immutable` is set"
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_SERVICE_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_CLAIM_FREE: Final = ("resources", "volumeName", "volumeAttributesClassName")
_STATEFULSET_FREE: Final = (
    *("replicas", "template", "updateStrategy", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
    *("ordinals", "revisionHistoryLimit"),
)
_CRON_FIELDS: Final = 5
_PATH_TYPES: Final = ("Exact", "Prefix", "ImplementationSpecific")


# -- ConfigMap and Secret


def keys_errors(obj: Obj) -> Iterator[FieldError]:
    """The keys of data."""
    for field in ("data", "binaryData"):
        for key in obj.get(field) or ():
            if not _KEY.fullmatch(key) or len(key) > _KEY_MAX:
                why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                yield FieldError.invalid(f"{field}[{key}]", key, why)


def data_update_errors(new: Obj, old: Obj) -> Iterator[FieldError]:
    """What was declared immutable stays, and so does the declaration. A Secret keeps its type."""
    yield from keys_errors(new)
    if "type" in old and new.get("type") != old["type"]:
        yield FieldError.invalid("type", new.get("type") or "", IMMUTABLE)
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield FieldError.forbidden("immutable", _WHEN_SET)
    for field in ("data", "binaryData"):
        if (new.get(field) or {}) != (old.get(field) or {}):
            yield FieldError.forbidden(field, _WHEN_SET)


# -- Service and what stands behind it


def service_errors(service: Obj) -> Iterator[FieldError]:
    """Type, ports, address."""
    spec = service.get("spec") or {}
    type_, ports, address = spec.get("type"), spec.get("ports") or [], spec.get("clusterIP")
    yield from one_of(type_, _SERVICE_TYPES, "spec.type")
    if type_ == "ExternalName":
        yield from named((spec.get("externalName") or "").removesuffix("."), names.dns_subdomain, "spec.externalName")
    elif not ports and address != "None":
        yield FieldError.required("spec.ports")
    if type_ in ("NodePort", "LoadBalancer") and address == "None":
        yield FieldError.invalid("spec.clusterIPs[0]", address, f"may not be set to 'None' for {type_} services")
    for position, port in enumerate(ports):
        path = f"spec.ports[{position}]"
        if len(ports) > 1 and not port.get("name"):
            yield FieldError.required(f"{path}.name")
        yield from optionally_named(port.get("name"), names.dns_label, f"{path}.name")
        yield from within(port.get("port") or 0, 1, PORT_MAX, f"{path}.port")
        yield from one_of(port.get("protocol"), _PROTOCOLS, f"{path}.protocol")
    yield from unique((f"spec.ports[{i}].name", port.get("name")) for i, port in enumerate(ports))
    told = [(f"spec.ports[{i}]", (port.get("port"), port.get("protocol"))) for i, port in enumerate(ports)]
    if len({value for _, value in told}) < len(told):
        yield from unique(told)


def service_update_errors(new: Obj, old: Obj) -> Iterator[FieldError]:
    """As for a new one; an address stays while the Service has one."""
    yield from service_errors(new)
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    address, old_address = spec.get("clusterIP"), old_spec.get("clusterIP")
    if old_address and address != old_address and "ExternalName" not in (spec.get("type"), old_spec.get("type")):
        yield FieldError.invalid("spec.clusterIPs[0]", [address or ""], "may not change once set")


def endpoints_errors(endpoints: Obj) -> Iterator[FieldError]:
    """Addresses and ports."""
    for position, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{position}]"
        addresses, not_ready = subset.get("addresses") or [], subset.get("notReadyAddresses") or []
        if not addresses and not not_ready:
            yield FieldError.required(path, "must specify `addresses` or `notReadyAddresses`")
        for field, listed in (("addresses", addresses), ("notReadyAddresses", not_ready)):
            for index, address in enumerate(listed):
                yield from _ip_errors(address.get("ip"), f"{path}.{field}[{index}].ip")
        for index, port in enumerate(subset.get("ports") or ()):
            yield from within(port.get("port") or 0, 1, PORT_MAX, f"{path}.ports[{index}].port")


def slice_errors(endpoints: Obj) -> Iterator[FieldError]:
    """The kind of its addresses, and these."""
    kinds = ("FQDN", "IPv4", "IPv6")
    yield from one_of(endpoints.get("addressType"), kinds, "addressType")
    for position, endpoint in enumerate(endpoints.get("endpoints") or ()):
        path = f"endpoints[{position}].addresses"
        if not endpoint.get("addresses"):
            yield FieldError.required(path, "must contain at least 1 address")
        if endpoints.get("addressType") != "FQDN":
            for index, address in enumerate(endpoint.get("addresses") or ()):
                yield from _ip_errors(address, f"{path}[{index}]")


def slice_update_errors(new: Obj, old: Obj) -> Iterator[FieldError]:
    """As for a new one; the kind of its addresses stays."""
    yield from slice_errors(new)
    if new.get("addressType") != old.get("addressType"):
        yield FieldError.invalid("addressType", new.get("addressType") or "", IMMUTABLE)


def _ip_errors(address: str | None, path: str) -> Iterator[FieldError]:
    try:
        ipaddress.ip_address(address or "")
    except ValueError:
        yield FieldError.invalid(path, address or "", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def ingress_errors(ingress: Obj) -> Iterator[FieldError]:
    """It has to lead somewhere, and every path has to say how it is meant."""
    spec = ingress.get("spec") or {}
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield FieldError.invalid("spec", [], "either `defaultBackend` or `rules` must be specified")
    for position, rule in enumerate(spec.get("rules") or ()):
        for index, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            where = f"spec.rules[{position}].http.paths[{index}]"
            type_ = path.get("pathType")
            if not type_:
                yield FieldError.required(f"{where}.pathType", "pathType must be specified")
            else:
                yield from one_of(type_, _PATH_TYPES, f"{where}.pathType")
            if type_ in ("Exact", "Prefix") and not (path.get("path") or "").startswith("/"):
                yield FieldError.invalid(f"{where}.path", path.get("path") or "", "must be an absolute path")


# -- volumes


def claim_errors(claim: Obj) -> Iterator[FieldError]:
    """Access modes and size."""
    spec = claim.get("spec") or {}
    requests = (spec.get("resources") or {}).get("requests") or {}
    if not spec.get("accessModes"):
        yield FieldError.required("spec.accessModes", "at least 1 access mode is required")
    if "storage" not in requests:
        yield FieldError.required("spec.resources[storage]")
    yield from quantity_errors(requests, "spec.resources.requests")


def claim_update_errors(new: Obj, old: Obj) -> Iterator[FieldError]:
    """Nothing but the size changes, and the volume is given once."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if spec is old_spec:
        return
    yield from claim_errors(new)
    changed = _without(spec, _CLAIM_FREE) != _without(old_spec, _CLAIM_FREE)
    if changed or (old_spec.get("volumeName") and spec.get("volumeName") != old_spec["volumeName"]):
        why = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield FieldError.forbidden("spec", why)


def volume_errors(volume: Obj) -> Iterator[FieldError]:
    """Access modes and size."""
    spec = volume.get("spec") or {}
    if not spec.get("accessModes"):
        yield FieldError.required("spec.accessModes")
    if not spec.get("capacity"):
        yield FieldError.required("spec.capacity")
    yield from quantity_errors(spec.get("capacity") or {}, "spec.capacity")


def storageclass_errors(storage: Obj) -> Iterator[FieldError]:
    """Who provides it."""
    if not storage.get("provisioner"):
        yield FieldError.required("provisioner")
    yield from one_of(storage.get("reclaimPolicy"), ("Delete", "Retain"), "reclaimPolicy")


# -- workloads


def statefulset_errors(owner: Obj) -> list[FieldError]:
    """Size, selector, template."""
    spec = owner.get("spec") or {}
    return not_negative(spec.get("replicas"), "spec.replicas") + selected_template_errors(spec)


def statefulset_update_errors(new: Obj, old: Obj) -> list[FieldError]:
    """As for a new one; most of the spec stays."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if spec is old_spec:
        return []
    errors = statefulset_errors(new)
    if _without(spec, _STATEFULSET_FREE) != _without(old_spec, _STATEFULSET_FREE):
        why = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        errors.append(FieldError.forbidden("spec", why))
    return errors


def cronjob_errors(cron: Obj) -> Iterator[FieldError]:
    """When, and what."""
    spec = cron.get("spec") or {}
    schedule = spec.get("schedule") or ""
    if not schedule:
        yield FieldError.required("spec.schedule")
    elif not schedule.startswith("@") and len(schedule.split()) != _CRON_FIELDS:
        why = f"expected exactly {_CRON_FIELDS} fields, found {len(schedule.split())}: [{schedule}]"
        yield FieldError.invalid("spec.schedule", schedule, why)
    yield from one_of(spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"), "spec.concurrencyPolicy")
    for error in job_errors(spec.get("jobTemplate") or {}):
        yield FieldError(f"spec.jobTemplate.{error.field}", error.reason, error.message)


def autoscaler_errors(scaler: Obj) -> Iterator[FieldError]:
    """What is scaled, and between which sizes."""
    spec = scaler.get("spec") or {}
    ref, least, most = spec.get("scaleTargetRef") or {}, spec.get("minReplicas"), spec.get("maxReplicas") or 0
    for field in ("kind", "name"):
        if not ref.get(field):
            yield FieldError.required(f"spec.scaleTargetRef.{field}")
    if most < 1:
        yield FieldError.invalid("spec.maxReplicas", most, "must be greater than 0")
    if least is not None and least < 1:
        yield FieldError.invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield FieldError.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")


# -- rights


def binding_update_errors(new: Obj, old: Obj) -> Iterator[FieldError]:
    """The role stays."""
    if new.get("roleRef") != old.get("roleRef"):
        yield FieldError.invalid("roleRef", new.get("roleRef"), "cannot change roleRef")


def _without(spec: Obj, fields: tuple[str, ...]) -> Obj:
    return {field: value for field, value in spec.items() if field not in fields}
