"""The spec of a pod, in a pod or in a template.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodSpec). Works on a defaulted spec.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.validation.pods.containers import containers_errors
from oarlock.sandbox.apiserver.validation.pods.placement import affinity_errors, placement_errors
from oarlock.sandbox.apiserver.validation.values import INT32_MAX, named, one_of, optionally_named, unique, within

Obj = dict[str, Any]

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_NAMED_FIELDS: Final = (
    ("nodeName", names.dns_subdomain),
    ("serviceAccountName", names.dns_subdomain),
    ("priorityClassName", names.dns_subdomain),
    ("runtimeClassName", names.dns_subdomain),
    ("hostname", names.dns_label),
    ("subdomain", names.dns_label),
)


def pod_spec_errors(spec: Obj, path: str) -> list[FieldError]:
    """What is wrong with `spec`, which stands at `path`."""
    errors = _volume_errors(spec.get("volumes") or [], f"{path}.volumes")
    errors += containers_errors(spec, path)
    errors += one_of(spec.get("restartPolicy"), _RESTART_POLICIES, f"{path}.restartPolicy")
    errors += one_of(spec.get("dnsPolicy"), _DNS_POLICIES, f"{path}.dnsPolicy")
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None:
        errors += within(deadline_s, 1, INT32_MAX, f"{path}.activeDeadlineSeconds")
    for field, check in _NAMED_FIELDS:
        errors += optionally_named(spec.get(field), check, f"{path}.{field}")
    errors += placement_errors(spec, path)
    gates = [
        (f"{path}.schedulingGates[{position}]", gate.get("name"))
        for position, gate in enumerate(spec.get("schedulingGates") or ())
    ]
    for here, gate_name in gates:
        errors += named(gate_name, names.qualified_name, here)
    return errors + unique(gates)


def own_placement_errors(own: Obj, path: str) -> list[FieldError]:
    """What is wrong with the fields that `placement_parts.OWN_FIELDS` names, which the rest has no part in."""
    errors = optionally_named(own.get("nodeName"), names.dns_subdomain, f"{path}.nodeName")
    return errors + affinity_errors(own.get("affinity") or {}, f"{path}.affinity")


def _volume_errors(volumes: list[Obj], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, volume in enumerate(volumes):
        here = f"{path}[{position}]"
        errors += named(volume.get("name"), names.dns_label, f"{here}.name")
        sources = [field for field, value in volume.items() if field != "name" and value is not None]
        if not sources:
            errors.append(FieldError.required(here, "must specify a volume type"))
        for surplus in sources[1:]:
            errors.append(FieldError.forbidden(f"{here}.{surplus}", "may not specify more than 1 volume type"))
    names_given = ((f"{path}[{position}].name", volume.get("name")) for position, volume in enumerate(volumes))
    return errors + unique(names_given)
