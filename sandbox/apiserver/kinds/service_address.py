"""The address of a Service, which updates keep if they leave it out.

Upstream: pkg/registry/core/service/storage/storage.go, patchAllocatedValues.
"""

from __future__ import annotations

from typing import Any, Final

Obj = dict[str, Any]

_FIELDS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def with_kept_address(new: Obj, old: Obj) -> Obj:
    """`new` with the address of `old`, unless it names one itself or is to have none."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") or not old_spec.get("clusterIP"):
        return new
    return {**new, "spec": {**spec, **{field: old_spec[field] for field in _FIELDS if field in old_spec}}}
