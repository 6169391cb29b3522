"""The shapes of pods and pod templates."""

from __future__ import annotations

from typing import Any

from oarlock.sandbox.apiserver.shapes.fields import (
    CONDITIONS,
    LABEL_SELECTOR,
    METADATA,
    NAMED,
    REQUIREMENT,
    Int32,
    Quantities,
    StringMap,
    Strings,
    kind,
    many,
    shape,
)

_OBJECT = dict[str, Any]
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)

# -- containers

_PROBE = shape(
    {
        "initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold": Int32,
        "httpGet grpc": _OBJECT,
    }
)
_CONTAINERS = many(
    shape(
        {
            "name image imagePullPolicy restartPolicy terminationMessagePath terminationMessagePolicy": str,
            "command args": Strings,
            "ports": many(shape({"name hostIP protocol": str, "containerPort hostPort": Int32})),
            "env": many(shape({"name value": str, "valueFrom": dict[str, _OBJECT | None]})),
            "volumeMounts": many(shape({"name mountPath": str})),
            "resources": shape({"limits requests": Quantities}),
            "livenessProbe readinessProbe startupProbe": _PROBE,
        }
    )
)

# -- where a pod may run

_NODE_TERM = shape({"matchExpressions matchFields": many(REQUIREMENT)})
_POD_TERM = shape({"topologyKey": str, "labelSelector namespaceSelector": LABEL_SELECTOR})
_NODE_AFFINITY = shape(
    {
        _REQUIRED: shape({"nodeSelectorTerms": many(_NODE_TERM)}),
        _PREFERRED: many(shape({"weight": Int32, "preference": _NODE_TERM})),
    }
)
_POD_AFFINITY = shape(
    {
        _REQUIRED: many(_POD_TERM),
        _PREFERRED: many(shape({"weight": Int32, "podAffinityTerm": _POD_TERM})),
    }
)
_TOLERATION = shape({"key operator value effect": str, "tolerationSeconds": int})
_SPREAD = shape({"maxSkew": Int32, "topologyKey whenUnsatisfiable": str, "labelSelector": LABEL_SELECTOR})

# -- the whole

_POD_SPEC = shape(
    {
        "containers initContainers ephemeralContainers": _CONTAINERS,
        "volumes schedulingGates": many(NAMED),
        "nodeName restartPolicy dnsPolicy schedulerName serviceAccountName": str,
        "priorityClassName runtimeClassName hostname subdomain": str,
        "nodeSelector": StringMap,
        "affinity": shape({"nodeAffinity": _NODE_AFFINITY, "podAffinity podAntiAffinity": _POD_AFFINITY}),
        "tolerations": many(_TOLERATION),
        "topologySpreadConstraints": many(_SPREAD),
        "readinessGates": many(shape({"conditionType": str})),
        "hostNetwork enableServiceLinks": bool,
        "terminationGracePeriodSeconds activeDeadlineSeconds": int,
        "securityContext": _OBJECT,
    }
)
_STATE = shape(
    {
        "waiting": shape({"reason": str}),
        "running": _OBJECT,
        "terminated": shape({"reason finishedAt": str, "exitCode signal": Int32}),
    }
)
_CONTAINER_STATUSES = many(
    shape({"name": str, "ready started": bool, "restartCount": Int32, "state lastState": _STATE})
)
_POD_STATUS = shape(
    {
        "phase reason message podIP nominatedNodeName": str,
        "conditions": CONDITIONS,
        "containerStatuses initContainerStatuses": _CONTAINER_STATUSES,
    }
)

POD = kind({"spec": _POD_SPEC, "status": _POD_STATUS})
POD_TEMPLATE = shape({"metadata": METADATA, "spec": _POD_SPEC})
