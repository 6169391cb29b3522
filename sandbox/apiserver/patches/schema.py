"""Which lists of which kinds merge, and by what key, under a strategic merge patch.

Taken from the patchStrategy and patchMergeKey tags of upstream's types (staging/src/k8s.io/api:
core/v1/types.go and apps/v1/types.go; apimachinery/pkg/apis/meta/v1/types.go). What is not named
here replaces (lists) or merges field by field (objects), as an untagged field does upstream:
tolerations and node taints, for instance, are replaced as a whole. A new kind is an entry in `_KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PRIMITIVES = ""  # merge key of a list of strings: the element itself


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """What a strategic patch has to know of one object.

    `lists`: field -> merge key of a list that merges (PRIMITIVES for plain strings).
    `fields`: field -> schema of the object there, or of the elements of the list there.
    """

    lists: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Schema] = field(default_factory=dict)

    def under(self, name: str) -> Schema:
        """Schema of the field `name`, PLAIN where nothing merges."""
        return self.fields.get(name, PLAIN)


PLAIN = Schema()

METADATA = Schema(lists={"ownerReferences": "uid", "finalizers": PRIMITIVES})

_CONTAINER = Schema(
    lists={
        "ports": "containerPort",
        "env": "name",
        "volumeMounts": "mountPath",
        "volumeDevices": "devicePath",
    }
)

POD_SPEC = Schema(
    lists={
        "containers": "name",
        "initContainers": "name",
        "ephemeralContainers": "name",
        "volumes": "name",
        "imagePullSecrets": "name",
        "hostAliases": "ip",
        "topologySpreadConstraints": "topologyKey",
        "schedulingGates": "name",
        "resourceClaims": "name",
    },
    fields={"containers": _CONTAINER, "initContainers": _CONTAINER, "ephemeralContainers": _CONTAINER},
)

POD_TEMPLATE = Schema(fields={"metadata": METADATA, "spec": POD_SPEC})

_CONDITIONS = Schema(lists={"conditions": "type"})


def _kind(spec: Schema = PLAIN, status: Schema = PLAIN, *, lists: Mapping[str, str] | None = None) -> Schema:
    return Schema(lists=lists or {}, fields={"metadata": METADATA, "spec": spec, "status": status})


_WORKLOAD = _kind(Schema(fields={"template": POD_TEMPLATE}), _CONDITIONS)

_KINDS: Mapping[str, Schema] = {
    "Pod": _kind(
        POD_SPEC,
        Schema(lists={"conditions": "type", "podIPs": "ip", "hostIPs": "ip", "resourceClaimStatuses": "name"}),
    ),
    "ReplicaSet": _WORKLOAD,
    "ReplicationController": _WORKLOAD,
    "DaemonSet": _WORKLOAD,
    "Deployment": _WORKLOAD,
    "Job": _WORKLOAD,
    "StatefulSet": _WORKLOAD,
    "CronJob": _kind(
        Schema(fields={"jobTemplate": Schema(fields={"spec": Schema(fields={"template": POD_TEMPLATE})})})
    ),
    "PersistentVolumeClaim": _kind(status=_CONDITIONS),
    "PodDisruptionBudget": _kind(status=_CONDITIONS),
    "ValidatingWebhookConfiguration": _kind(lists={"webhooks": "name"}),
    "MutatingWebhookConfiguration": _kind(lists={"webhooks": "name"}),
    "Namespace": _kind(status=_CONDITIONS),
    "Node": _kind(Schema(lists={"podCIDRs": PRIMITIVES}), Schema(lists={"conditions": "type", "addresses": "type"})),
    "Service": _kind(Schema(lists={"ports": "port"}), _CONDITIONS),
    "ServiceAccount": _kind(lists={"secrets": "name"}),
}

_OTHER = _kind()


def schema_of(kind: str) -> Schema:
    """The schema of a kind by its Kubernetes name; kinds not named here merge their metadata only."""
    return _KINDS.get(kind, _OTHER)
