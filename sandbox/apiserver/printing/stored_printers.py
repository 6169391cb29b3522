"""How the kinds that are only stored look in `kubectl get`.

Upstream: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.printing.columns import NONE, Cell, Printer, columns, name_of
from oarlock.sandbox.apiserver.text.selectors import selector_text
from oarlock.sandbox.apiserver.text.times import age

Obj = dict[str, Any]
_ABSENT: Final = "N/A"


def _made(obj: Obj, now_s: float) -> list[Cell]:
    return [name_of(obj), str(obj["metadata"].get("creationTimestamp") or "")]


def _rolebinding(obj: Obj, now_s: float) -> list[Cell]:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()

    def of_kind(kind: str) -> str:
        found = [s for s in subjects if s.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{s.get('namespace') or ''}/{s.get('name') or ''}" for s in found)
        return ", ".join(s.get("name") or "" for s in found)

    return [
        name_of(obj),
        f"{role.get('kind') or ''}/{role.get('name') or ''}",
        age(obj, now_s),
        of_kind("User"),
        of_kind("Group"),
        of_kind("ServiceAccount"),
    ]


def _budget(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    least, most = (str(spec.get(field, _ABSENT)) for field in ("minAvailable", "maxUnavailable"))
    return [name_of(obj), least, most, status.get("disruptionsAllowed", 0), age(obj, now_s)]


def _priorityclass(obj: Obj, now_s: float) -> list[Cell]:
    is_default = "true" if obj.get("globalDefault") else "false"
    return [name_of(obj), obj.get("value") or 0, is_default, age(obj, now_s)]


def _networkpolicy(obj: Obj, now_s: float) -> list[Cell]:
    selector = (obj.get("spec") or {}).get("podSelector")
    return [name_of(obj), selector_text(selector) or NONE, age(obj, now_s)]


def _ingressclass(obj: Obj, now_s: float) -> list[Cell]:
    spec = obj.get("spec") or {}
    parameters = spec.get("parameters")
    told = NONE
    if parameters:
        group = parameters.get("apiGroup")
        told = f"{parameters.get('kind') or ''}{'.' if group else ''}{group or ''}/{parameters.get('name') or ''}"
    return [name_of(obj), spec.get("controller") or "", told, age(obj, now_s)]


def _webhooks(obj: Obj, now_s: float) -> list[Cell]:
    return [name_of(obj), len(obj.get("webhooks") or ()), age(obj, now_s)]


_ROLE: Final = Printer(columns("Name|Created At"), _made)
_ROLE_BINDING: Final = Printer(columns("Name|Role|Age", "Users|Groups|ServiceAccounts"), _rolebinding)
_WEBHOOKS: Final = Printer(columns("Name|Webhooks|Age", integers="Webhooks"), _webhooks)

STORED_PRINTERS: Final[Mapping[str, Printer]] = {
    "Role": _ROLE,
    "ClusterRole": _ROLE,
    "RoleBinding": _ROLE_BINDING,
    "ClusterRoleBinding": _ROLE_BINDING,
    "PodDisruptionBudget": Printer(
        columns("Name|Min Available|Max Unavailable|Allowed Disruptions|Age", integers="Allowed Disruptions"), _budget
    ),
    "PriorityClass": Printer(columns("Name|Value|Global-Default|Age", integers="Value"), _priorityclass),
    "NetworkPolicy": Printer(columns("Name|Pod-Selector|Age"), _networkpolicy),
    "IngressClass": Printer(columns("Name|Controller|Parameters|Age"), _ingressclass),
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "CustomResourceDefinition": Printer(columns("Name|Created At"), _made),
}
