"""An admission webhook denies the pods of one namespace."""

from __future__ import annotations

from tests.planted.fault import Fault
from tests.planted.fleet import Fleet

NAMESPACE, NAME = "shop", "cart"


def plant(fleet: Fleet) -> list[str]:
    deny = {"action": "denyWebhook", "verbs": ["create"], "resources": ["pods"], "namespaces": [NAMESPACE]}
    fleet.api.faults(fleet.seed, [deny])
    fleet.api.scale(NAMESPACE, NAME, 5)
    return [rf"\b{NAMESPACE}/{NAME}\b"]


def heal(fleet: Fleet) -> None:
    fleet.api.faults(fleet.seed, [])
    fleet.try_again(NAMESPACE, NAME)


FAULT = Fault(
    "a webhook denies the pods of one namespace",
    "Pods are missing: an admission webhook",
    (r'admission webhook "pods\.example\.com" denied the request',),
    plant,
    heal,
)
