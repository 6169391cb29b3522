"""The shapes of the owners of pods, and of the revisions they keep."""

from __future__ import annotations

from typing import Any

from oarlock.sandbox.apiserver.shapes.fields import (
    CONDITIONS,
    LABEL_SELECTOR,
    Int32,
    Int64,
    IntOrPercent,
    StringMap,
    kind,
    shape,
)
from oarlock.sandbox.apiserver.shapes.pods import POD_TEMPLATE

_REPLICAS = {"replicas minReadySeconds": Int32, "template": POD_TEMPLATE}
_REPLICAS_STATUS = shape(
    {
        "replicas fullyLabeledReplicas readyReplicas availableReplicas terminatingReplicas": Int32,
        "observedGeneration": int,
        "conditions": CONDITIONS,
    }
)
_UPDATE_STRATEGY = shape({"type": str, "rollingUpdate": shape({"maxUnavailable maxSurge": IntOrPercent})})

REPLICA_SET = kind({"spec": shape({**_REPLICAS, "selector": LABEL_SELECTOR}), "status": _REPLICAS_STATUS})
REPLICATION_CONTROLLER = kind({"spec": shape({**_REPLICAS, "selector": StringMap}), "status": _REPLICAS_STATUS})
DAEMON_SET = kind(
    {
        "spec": shape(
            {
                "selector": LABEL_SELECTOR,
                "template": POD_TEMPLATE,
                "updateStrategy": _UPDATE_STRATEGY,
                "minReadySeconds revisionHistoryLimit": Int32,
            }
        ),
        "status": shape(
            {
                "currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady": Int32,
                "updatedNumberScheduled numberAvailable numberUnavailable collisionCount": Int32,
                "observedGeneration": Int64,
                "conditions": CONDITIONS,
            }
        ),
    }
)
DEPLOYMENT = kind(
    {
        "spec": shape(
            {
                **_REPLICAS,
                "selector": LABEL_SELECTOR,
                "strategy": _UPDATE_STRATEGY,
                "revisionHistoryLimit progressDeadlineSeconds": Int32,
                "paused": bool,
            }
        ),
        "status": shape(
            {
                "replicas updatedReplicas readyReplicas availableReplicas unavailableReplicas": Int32,
                "terminatingReplicas collisionCount": Int32,
                "observedGeneration": Int64,
                "conditions": CONDITIONS,
            }
        ),
    }
)
JOB_SPEC = shape(
    {
        "parallelism completions backoffLimit": Int32,
        "suspend": bool,
        "selector": LABEL_SELECTOR,
        "template": POD_TEMPLATE,
    }
)
JOB = kind(
    {
        "spec": JOB_SPEC,
        "status": shape({"active succeeded failed": Int32, "startTime completionTime": str, "conditions": CONDITIONS}),
    }
)
CONTROLLER_REVISION = kind({"data": Any, "revision": Int64})
