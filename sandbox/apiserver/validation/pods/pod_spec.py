"""The spec of a pod, in a pod or in a template.

Upstream: pkg/apis/core/validation/validation.go (ValidatePodSpec). Works on a defaulted spec.

Each spec is checked once. A controller creates hundreds of pods from one template and writes its owner's status at
every turn. Specs known to be good are recognised by identity, whatever path they stand at; of specs that differ only in
the place where the pod is to run, only that is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.defaulting.spec_memo import IdentityMemo, parted
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


_CONTENTS_MAX: Final = 512
_GOOD: Final[IdentityMemo[bool]] = IdentityMemo()
_GOOD_COMMON: Final[set[bytes]] = set()


def pod_spec_errors(spec: Obj, path: str) -> list[FieldError]:
    """What is wrong with `spec`, which stands at `path` and must not be changed afterwards."""
    if _GOOD.get(spec):
        return []
    common, own = parted(spec)
    content = orjson.dumps(common) if own else b""
    if content in _GOOD_COMMON and not list(_own_placement_errors(own, path)):
        _GOOD.put(spec, True)
        return []
    errors = list(uncached_errors(spec, path))
    if not errors:
        _GOOD.put(spec, True)
        if own:
            if len(_GOOD_COMMON) >= _CONTENTS_MAX:
                _GOOD_COMMON.clear()
            _GOOD_COMMON.add(content)
    return errors


def uncached_errors(spec: Obj, path: str) -> Iterator[FieldError]:
    """As `pod_spec_errors`, looked at anew."""
    yield from _volume_errors(spec.get("volumes") or [], f"{path}.volumes")
    yield from containers_errors(spec, path)
    yield from one_of(spec.get("restartPolicy"), _RESTART_POLICIES, f"{path}.restartPolicy")
    yield from one_of(spec.get("dnsPolicy"), _DNS_POLICIES, f"{path}.dnsPolicy")
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None:
        yield from within(deadline_s, 1, INT32_MAX, f"{path}.activeDeadlineSeconds")
    for field, check in _NAMED_FIELDS:
        yield from optionally_named(spec.get(field), check, f"{path}.{field}")
    yield from placement_errors(spec, path)
    gates = [
        (f"{path}.schedulingGates[{position}]", gate.get("name"))
        for position, gate in enumerate(spec.get("schedulingGates") or ())
    ]
    for here, gate_name in gates:
        yield from named(gate_name, names.qualified_name, here)
    yield from unique(gates)


def _own_placement_errors(own: Obj, path: str) -> Iterator[FieldError]:
    """What is wrong with the fields that `spec_memo.OWN_FIELDS` names, which the rest has no part in."""
    yield from optionally_named(own.get("nodeName"), names.dns_subdomain, f"{path}.nodeName")
    yield from affinity_errors(own.get("affinity") or {}, f"{path}.affinity")


def _volume_errors(volumes: list[Obj], path: str) -> Iterator[FieldError]:
    for position, volume in enumerate(volumes):
        here = f"{path}[{position}]"
        yield from named(volume.get("name"), names.dns_label, f"{here}.name")
        sources = [field for field, value in volume.items() if field != "name" and value is not None]
        if not sources:
            yield FieldError.required(here, "must specify a volume type")
        for surplus in sources[1:]:
            yield FieldError.forbidden(f"{here}.{surplus}", "may not specify more than 1 volume type")
    names_given = ((f"{path}[{position}].name", volume.get("name")) for position, volume in enumerate(volumes))
    yield from unique(names_given)
