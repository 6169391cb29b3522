"""A pod's quality of service (upstream: pkg/apis/core/v1/helper/qos/qos.go)."""

from __future__ import annotations

from typing import Any

from oarlock.sandbox.apiserver.text.quantities import parse_quantity

Obj = dict[str, Any]


def qos_class(spec: Obj) -> str:
    """BestEffort, Burstable or Guaranteed, from the cpu and memory of every container of a pod spec."""
    some, every = False, True
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        if not resources:
            every = False
            continue
        limits, requests = _amounts(resources.get("limits")), _amounts(resources.get("requests"))
        some = some or bool(limits or requests)
        # A request left out is the limit.
        every = every and len(limits) == 2 and {**limits, **requests} == limits
    if not some:
        return "BestEffort"
    return "Guaranteed" if every else "Burstable"


def _amounts(listed: Obj | None) -> dict[str, Any]:
    """The cpu and memory above 0. What cannot be read counts as 0; validation refuses it afterwards."""
    found: dict[str, Any] = {}
    for resource in ("cpu", "memory"):
        try:
            amount = parse_quantity((listed or {}).get(resource, 0))
        except ValueError:
            continue
        if amount > 0:
            found[resource] = amount
    return found
