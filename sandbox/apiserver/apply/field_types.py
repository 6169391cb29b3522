"""How the lists and maps of an object merge: by keys, as a set, field by field, or as a whole.

A type names only what differs from the rule for deduced types: maps merge field by field, lists are one value
(upstream: structured-merge-diff, typed.DeducedParseableType). The built-in kinds' types follow the listType,
listMapKey, structType and mapType tags of upstream's API (staging/src/k8s.io/api), as of 1.32.
`type_of_schema` gives the type of a structural OpenAPI v3 schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True, eq=False)
class FieldType:
    """`keys`: of a list whose elements merge by them; `defaults`: values of keys that may be absent.

    `is_set`: a list of distinct scalars. `atomic`: one value. `fields`: the types of named fields; `elements`: of a
    list's elements, or of a map's fields without a type of their own.
    """

    keys: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    is_set: bool = False
    atomic: bool = False
    fields: Mapping[str, FieldType] = field(default_factory=dict)
    elements: FieldType | None = None

    def under(self, name: str) -> FieldType:
        """Type of the field `name`."""
        return self.fields.get(name) or self.elements or DEDUCED


DEDUCED: Final = FieldType()
ATOMIC: Final = FieldType(atomic=True)
SET: Final = FieldType(is_set=True)


def _by(*keys: str, of: Mapping[str, FieldType] | None = None, **defaults: Any) -> FieldType:
    return FieldType(keys=keys, defaults=defaults, elements=FieldType(fields=of or {}))


def _with(**fields: FieldType) -> FieldType:
    return FieldType(fields=fields)


_METADATA: Final = _with(ownerReferences=_by("uid"), finalizers=SET)
_KEY_REFERENCE: Final = _with(configMapKeyRef=ATOMIC, secretKeyRef=ATOMIC, fieldRef=ATOMIC, resourceFieldRef=ATOMIC)
_CONTAINERS: Final = _by(
    "name",
    of={
        "ports": _by("containerPort", "protocol", protocol="TCP"),
        "env": _by("name", of={"valueFrom": _KEY_REFERENCE}),
        "volumeMounts": _by("mountPath"),
        "volumeDevices": _by("devicePath"),
        "resources": _with(claims=_by("name")),
        "resizePolicy": ATOMIC,
    },
)
_TERMS: Final = _with(requiredDuringSchedulingIgnoredDuringExecution=ATOMIC)
_POD_SPEC: Final = _with(
    containers=_CONTAINERS,
    initContainers=_CONTAINERS,
    ephemeralContainers=_CONTAINERS,
    volumes=_by("name"),
    imagePullSecrets=_by("name"),
    hostAliases=_by("ip"),
    topologySpreadConstraints=_by("topologyKey", "whenUnsatisfiable", of={"labelSelector": ATOMIC}),
    schedulingGates=_by("name"),
    resourceClaims=_by("name"),
    nodeSelector=ATOMIC,
    affinity=_with(nodeAffinity=_TERMS),
)
_TEMPLATE: Final = _with(metadata=_METADATA, spec=_POD_SPEC)
_CONDITIONS: Final = _with(conditions=_by("type"))


def _kind(spec: FieldType = DEDUCED, status: FieldType = _CONDITIONS, **fields: FieldType) -> FieldType:
    return FieldType(fields={"metadata": _METADATA, "spec": spec, "status": status, **fields})


_WORKLOAD: Final = _kind(_with(selector=ATOMIC, template=_TEMPLATE))
_ROLE_REFERENCE: Final = _kind(roleRef=ATOMIC)

_KINDS: Final[Mapping[str, FieldType]] = {
    "Pod": _kind(
        _POD_SPEC,
        _with(conditions=_by("type"), podIPs=_by("ip"), hostIPs=ATOMIC, resourceClaimStatuses=_by("name")),
    ),
    "ReplicaSet": _WORKLOAD,
    "ReplicationController": _WORKLOAD,
    "DaemonSet": _WORKLOAD,
    "Deployment": _WORKLOAD,
    "StatefulSet": _WORKLOAD,
    "Job": _WORKLOAD,
    "PodDisruptionBudget": _kind(_with(selector=ATOMIC)),
    "NetworkPolicy": _kind(_with(podSelector=ATOMIC)),
    "Node": _kind(
        _with(podCIDRs=SET),
        _with(conditions=_by("type"), addresses=ATOMIC),
    ),
    "Service": _kind(_with(ports=_by("port", "protocol", protocol="TCP"), selector=ATOMIC)),
    "ServiceAccount": _kind(secrets=_by("name"), imagePullSecrets=ATOMIC),
    "RoleBinding": _ROLE_REFERENCE,
    "ClusterRoleBinding": _ROLE_REFERENCE,
    "ControllerRevision": _kind(data=ATOMIC),
    "ValidatingWebhookConfiguration": _kind(webhooks=_by("name")),
    "MutatingWebhookConfiguration": _kind(webhooks=_by("name")),
}
_OTHER: Final = _kind()


def type_of_kind(kind: str) -> FieldType:
    """The type of a kind by its Kubernetes name; of a kind not named here metadata and conditions merge by key."""
    return _KINDS.get(kind, _OTHER)


def type_of_schema(schema: Mapping[str, Any]) -> FieldType:
    """The type that a structural OpenAPI v3 schema gives, by its x-kubernetes-list-type, list-map-keys and map-type.

    The root's metadata is typed as that of every kind.
    """
    described = _of_schema(schema)
    return FieldType(atomic=described.atomic, fields={**described.fields, "metadata": _METADATA})


def _of_schema(schema: Mapping[str, Any]) -> FieldType:
    if schema.get("type") == "array":
        items = schema.get("items") or {}
        list_type = schema.get("x-kubernetes-list-type", "atomic")
        if list_type == "map":
            properties = items.get("properties") or {}
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
            return FieldType(keys=keys, defaults=defaults, elements=_of_schema(items))
        return SET if list_type == "set" else ATOMIC
    if schema.get("x-kubernetes-map-type") == "atomic":
        return ATOMIC
    more = schema.get("additionalProperties")
    return FieldType(
        fields={name: _of_schema(each) for name, each in (schema.get("properties") or {}).items()},
        elements=_of_schema(more) if isinstance(more, Mapping) else None,
    )
