"""The shapes of endpoints, ingresses, volumes, autoscalers, and of the kinds that make pods and are only stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.shapes.fields import (
    CONDITIONS,
    LABEL_SELECTOR,
    METADATA,
    REFERENCE,
    Int32,
    Objects,
    Quantities,
    Strings,
    kind,
    many,
    shape,
)
from oarlock.sandbox.apiserver.shapes.pods import POD_TEMPLATE
from oarlock.sandbox.apiserver.shapes.workloads import JOB_SPEC

_RESOURCES = shape({"limits requests": Quantities})
_CLAIM_SPEC = shape(
    {
        "accessModes": Strings,
        "storageClassName volumeName volumeMode volumeAttributesClassName": str,
        "resources": _RESOURCES,
        "selector": LABEL_SELECTOR,
    }
)
_CLAIM_STATUS = shape({"phase": str, "accessModes": Strings, "capacity": Quantities, "conditions": CONDITIONS})
_PORTS = many(shape({"name protocol": str, "port": Int32}))
_ADDRESSES = many(shape({"ip hostname nodeName": str}))
_BACKEND = dict[str, Any]
_PATHS = many(shape({"path pathType": str, "backend": _BACKEND}))

NETWORK_AND_STORAGE_SHAPES: Final[Mapping[str, Any]] = {
    "Endpoints": kind({"subsets": many(shape({"addresses notReadyAddresses": _ADDRESSES, "ports": _PORTS}))}),
    "EndpointSlice": kind(
        {"addressType": str, "ports": _PORTS, "endpoints": many(shape({"addresses": Strings, "hostname": str}))}
    ),
    "Ingress": kind(
        {
            "spec": shape(
                {
                    "ingressClassName": str,
                    "defaultBackend": _BACKEND,
                    "tls": Objects,
                    "rules": many(shape({"host": str, "http": shape({"paths": _PATHS})})),
                }
            ),
            "status": shape({"loadBalancer": shape({"ingress": many(shape({"ip hostname": str}))})}),
        }
    ),
    "PersistentVolumeClaim": kind({"spec": _CLAIM_SPEC, "status": _CLAIM_STATUS}),
    "PersistentVolume": kind(
        {
            "spec": shape(
                {
                    "capacity": Quantities,
                    "accessModes": Strings,
                    "persistentVolumeReclaimPolicy storageClassName volumeMode volumeAttributesClassName": str,
                    "claimRef": REFERENCE,
                }
            ),
            "status": shape({"phase reason message": str}),
        }
    ),
    "StorageClass": kind({"provisioner reclaimPolicy volumeBindingMode": str, "allowVolumeExpansion": bool}),
    "LimitRange": kind({"spec": shape({"limits": Objects})}),
    "HorizontalPodAutoscaler": kind(
        {
            "spec": shape(
                {
                    "scaleTargetRef": shape({"apiVersion kind name": str}),
                    "minReplicas maxReplicas": Int32,
                    "metrics": many(
                        shape(
                            {
                                "type": str,
                                "resource": shape(
                                    {
                                        "name": str,
                                        "target": shape(
                                            {"type": str, "averageUtilization": Int32, "averageValue": str | int}
                                        ),
                                    }
                                ),
                            }
                        )
                    ),
                }
            ),
            "status": shape({"currentReplicas desiredReplicas": Int32, "conditions": CONDITIONS}),
        }
    ),
    "CronJob": kind(
        {
            "spec": shape(
                {
                    "schedule timeZone concurrencyPolicy": str,
                    "suspend": bool,
                    "startingDeadlineSeconds successfulJobsHistoryLimit failedJobsHistoryLimit": int,
                    "jobTemplate": shape({"metadata": METADATA, "spec": JOB_SPEC}),
                }
            ),
            "status": shape({"active": many(REFERENCE), "lastScheduleTime lastSuccessfulTime": str}),
        }
    ),
    "StatefulSet": kind(
        {
            "spec": shape(
                {
                    "replicas minReadySeconds revisionHistoryLimit": Int32,
                    "serviceName podManagementPolicy": str,
                    "selector": LABEL_SELECTOR,
                    "template": POD_TEMPLATE,
                    "updateStrategy": shape({"type": str, "rollingUpdate": shape({"partition": Int32})}),
                    "persistentVolumeClaimRetentionPolicy": shape({"whenDeleted whenScaled": str}),
                    "volumeClaimTemplates": many(
                        shape(
                            {"apiVersion kind": str, "metadata": METADATA, "spec": _CLAIM_SPEC, "status": _CLAIM_STATUS}
                        )
                    ),
                }
            ),
            "status": shape(
                {
                    "replicas readyReplicas currentReplicas updatedReplicas availableReplicas collisionCount": Int32,
                    "observedGeneration": int,
                    "currentRevision updateRevision": str,
                    "conditions": CONDITIONS,
                }
            ),
        }
    ),
}
