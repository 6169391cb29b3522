"""How the kinds that are only stored look in `kubectl get`.

Upstream: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.printing.columns import NONE, Cell, Printer, columns
from oarlock.sandbox.apiserver.printing.network_and_storage_printers import NETWORK_AND_STORAGE_PRINTERS
from oarlock.sandbox.apiserver.text.selectors import selector_text

Obj = dict[str, Any]
_ABSENT: Final = "N/A"


def _rolebinding(obj: Obj, now_s: float) -> list[Cell]:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()

    def of_kind(kind: str) -> str:
        found = [s for s in subjects if s.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{s.get('namespace') or ''}/{s.get('name') or ''}" for s in found)
        return ", ".join(s.get("name") or "" for s in found)

    return [
        f"{role.get('kind') or ''}/{role.get('name') or ''}",
        of_kind("User"),
        of_kind("Group"),
        of_kind("ServiceAccount"),
    ]


def _budget(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    least, most = (str(spec.get(field, _ABSENT)) for field in ("minAvailable", "maxUnavailable"))
    return [least, most, status.get("disruptionsAllowed", 0)]


def _ingressclass(obj: Obj, now_s: float) -> list[Cell]:
    spec = obj.get("spec") or {}
    parameters = spec.get("parameters")
    told = NONE
    if parameters:
        group = parameters.get("apiGroup")
        told = f"{parameters.get('kind') or ''}{'.' if group else ''}{group or ''}/{parameters.get('name') or ''}"
    return [spec.get("controller") or "", told]


_MADE: Final = Printer(columns("Name|Created At"), lambda obj, _: [str(obj["metadata"].get("creationTimestamp") or "")])
_ROLE_BINDING: Final = Printer(columns("Name|Role|Age", "Users|Groups|ServiceAccounts"), _rolebinding)
_WEBHOOKS: Final = Printer(
    columns("Name|Webhooks|Age", integers="Webhooks"), lambda obj, _: [len(obj.get("webhooks") or ())]
)

STORED_PRINTERS: Final[Mapping[str, Printer]] = {
    **NETWORK_AND_STORAGE_PRINTERS,
    "Role": _MADE,
    "ClusterRole": _MADE,
    "RoleBinding": _ROLE_BINDING,
    "ClusterRoleBinding": _ROLE_BINDING,
    "PodDisruptionBudget": Printer(
        columns("Name|Min Available|Max Unavailable|Allowed Disruptions|Age", integers="Allowed Disruptions"), _budget
    ),
    "PriorityClass": Printer(
        columns("Name|Value|Global-Default|Age", integers="Value"),
        lambda obj, _: [obj.get("value") or 0, "true" if obj.get("globalDefault") else "false"],
    ),
    "NetworkPolicy": Printer(
        columns("Name|Pod-Selector|Age"),
        lambda obj, _: [selector_text((obj.get("spec") or {}).get("podSelector")) or NONE],
    ),
    "IngressClass": Printer(columns("Name|Controller|Parameters|Age"), _ingressclass),
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "CustomResourceDefinition": _MADE,
    "LimitRange": _MADE,
}
