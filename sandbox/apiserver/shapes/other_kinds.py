"""The shapes of all kinds but pods and their owners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.shapes.definitions import DEFINITION
from oarlock.sandbox.apiserver.shapes.fields import (
    CONDITIONS,
    LABEL_SELECTOR,
    METADATA,
    NAMED,
    REFERENCE,
    Int32,
    IntOrPercent,
    Objects,
    Quantities,
    StringMap,
    Strings,
    kind,
    many,
    shape,
)

_NODE_SPEC = shape(
    {
        "taints": many(shape({"key value effect": str})),
        "unschedulable": bool,
        "podCIDR providerID": str,
    }
)
_NODE_STATUS = shape(
    {
        "capacity allocatable": Quantities,
        "conditions": CONDITIONS,
        "addresses": many(shape({"type address": str})),
        "nodeInfo": StringMap,
    }
)
_LEASE_SPEC = shape({"holderIdentity acquireTime renewTime": str, "leaseDurationSeconds leaseTransitions": Int32})
_SERVICE_SPEC = shape(
    {
        "type clusterIP externalName": str,
        "externalIPs": Strings,
        "selector": StringMap,
        "ports": many(shape({"name protocol": str, "port nodePort": Int32})),
    }
)
_BALANCER = shape({"ingress": many(shape({"ip hostname": str}))})
_SUBJECT = shape({"apiGroup kind name namespace": str})
_ROLE = kind({"rules": Objects})
_ROLE_BINDING = kind({"roleRef": _SUBJECT, "subjects": many(_SUBJECT)})
_WEBHOOKS = kind({"webhooks": Objects})

ANYTHING: Final = kind()

OTHER_SHAPES: Final[Mapping[str, Any]] = {
    "Namespace": kind(
        {"spec": shape({"finalizers": Strings}), "status": shape({"phase": str, "conditions": CONDITIONS})}
    ),
    "Node": kind({"spec": _NODE_SPEC, "status": _NODE_STATUS}),
    "Lease": kind({"spec": _LEASE_SPEC}),
    "Event": kind(
        {
            "involvedObject": REFERENCE,
            "source": dict[str, str | None],
            "series": shape({"count": Int32, "lastObservedTime": str}),
            "firstTimestamp lastTimestamp eventTime reportingInstance reportingComponent": str,
            "reason message type": str,
            "count": Int32,
        }
    ),
    "ResourceQuota": kind(
        {"spec": shape({"hard": Quantities, "scopes": Strings}), "status": shape({"hard used": Quantities})}
    ),
    "Service": kind({"spec": _SERVICE_SPEC, "status": shape({"loadBalancer": _BALANCER})}),
    "Secret": kind({"type": str, "immutable": bool, "data stringData": StringMap}),
    "ConfigMap": kind({"immutable": bool, "data binaryData": StringMap}),
    "ServiceAccount": kind({"secrets": many(REFERENCE), "imagePullSecrets": many(NAMED)}),
    "Scale": shape({"metadata": METADATA, "spec": shape({"replicas": Int32})}),
    "Binding": shape({"metadata": METADATA, "target": REFERENCE}),
    # Kinds that are only stored: what their rows in a table read.
    "Role": _ROLE,
    "ClusterRole": _ROLE,
    "RoleBinding": _ROLE_BINDING,
    "ClusterRoleBinding": _ROLE_BINDING,
    "PodDisruptionBudget": kind(
        {
            "spec": shape({"minAvailable maxUnavailable": IntOrPercent, "selector": LABEL_SELECTOR}),
            "status": shape({"disruptionsAllowed": Int32, "conditions": CONDITIONS}),
        }
    ),
    "PriorityClass": kind({"value": Int32, "globalDefault": bool}),
    "NetworkPolicy": kind({"spec": shape({"podSelector": LABEL_SELECTOR})}),
    "IngressClass": kind({"spec": shape({"controller": str, "parameters": _SUBJECT})}),
    "CSIDriver": kind({"spec": dict[str, Any]}),
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "CustomResourceDefinition": DEFINITION,
}
