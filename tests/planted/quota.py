"""A ResourceQuota leaves no room for the pods of one namespace."""

from __future__ import annotations

from tests.planted.fault import Fault
from tests.planted.fleet import Fleet

NAMESPACE, NAME = "batch", "crunch"
QUOTAS = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"


def plant(fleet: Fleet) -> list[str]:
    fleet.api.call("POST", QUOTAS, {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "4"}}})
    fleet.api.scale(NAMESPACE, NAME, 6)
    return [rf"\b{NAMESPACE}/{NAME}\b"]


def heal(fleet: Fleet) -> None:
    fleet.api.call("DELETE", f"{QUOTAS}/small")
    fleet.try_again(NAMESPACE, NAME)


FAULT = Fault(
    "a quota leaves a namespace no room",
    "Pods are missing: a quota",
    (r"exceeded quota: small\b",),
    plant,
    heal,
)
