"""Defaults of the kinds that are stored and that no controller here acts on.

Upstream: the `defaults.go` of pkg/apis/{core,apps,batch,networking,discovery,autoscaling,storage}. A kind whose
defaults are plain values of its spec is a line in `_OF_SPEC`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.defaulting.pod_spec import each, with_defaults
from oarlock.sandbox.apiserver.defaulting.templates import default_template, within

Obj = dict[str, Any]

_CLAIM: Final = {"volumeMode": "Filesystem"}
_JOB: Final = {"backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
_KEPT_CLAIMS: Final = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_CPU: Final = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}

_OF_SPEC: Final[Mapping[str, Obj]] = {
    "PersistentVolumeClaim": _CLAIM,
    "PersistentVolume": {**_CLAIM, "persistentVolumeReclaimPolicy": "Retain"},
    "HorizontalPodAutoscaler": {"minReplicas": 1, "metrics": [_CPU]},
}


def _plain(spec: Obj) -> Callable[[Obj], Obj]:
    return lambda obj: within(obj, "spec", lambda old: with_defaults(old, spec))


def _job_spec(spec: Obj) -> Obj:
    spec = with_defaults(spec, _JOB)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec = {**spec, "completions": 1}
    return within(with_defaults(spec, {"parallelism": 1}), "template", default_template)


def _cronjob_spec(spec: Obj) -> Obj:
    limits = {"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
    spec = with_defaults(spec, {"concurrencyPolicy": "Allow", "suspend": False, **limits})
    return within(
        spec,
        "jobTemplate",
        lambda made: within(made, "spec", lambda job: within(job, "template", default_template)),
    )


def _statefulset_spec(spec: Obj) -> Obj:
    spec = with_defaults(spec, {"podManagementPolicy": "OrderedReady", "replicas": 1, "revisionHistoryLimit": 10})
    spec = within(spec, "persistentVolumeClaimRetentionPolicy", lambda old: with_defaults(old, _KEPT_CLAIMS))
    spec = within(within(spec, "template", default_template), "updateStrategy", _statefulset_strategy)
    return each(spec, "volumeClaimTemplates", _claim_template)


def _statefulset_strategy(strategy: Obj) -> Obj:
    strategy = with_defaults(strategy, {"type": "RollingUpdate"})
    if strategy["type"] != "RollingUpdate":
        return strategy
    return within(strategy, "rollingUpdate", lambda old: with_defaults(old, {"partition": 0}))


def _claim_template(claim: Obj) -> Obj:
    claim = with_defaults(claim, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}})
    return within(claim, "spec", lambda spec: with_defaults(spec, _CLAIM))


def _service_spec(spec: Obj) -> Obj:
    spec = with_defaults(spec, {"type": "ClusterIP", "sessionAffinity": "None"})
    if spec["type"] != "ExternalName":
        spec = with_defaults(spec, {"internalTrafficPolicy": "Cluster"})
    return each(spec, "ports", _service_port)


def _service_port(port: Obj) -> Obj:
    return with_defaults(port, {"protocol": "TCP", "targetPort": port.get("port")})


def _tcp(port: Obj) -> Obj:
    return with_defaults(port, {"protocol": "TCP"})


def _endpoints(obj: Obj) -> Obj:
    return each(obj, "subsets", lambda subset: each(subset, "ports", _tcp))


def _slice_port(port: Obj) -> Obj:
    port = _tcp(port)
    return port if "name" in port else {**port, "name": ""}


def _definition_spec(spec: Obj) -> Obj:
    if "preserveUnknownFields" in spec and not spec["preserveUnknownFields"]:
        spec = {field: value for field, value in spec.items() if field != "preserveUnknownFields"}
    return within(with_defaults(spec, {"conversion": {"strategy": "None"}}), "names", _definition_names)


def _definition_names(names: Obj) -> Obj:
    kind = names.get("kind")
    return with_defaults(names, {"singular": kind.lower(), "listKind": f"{kind}List"}) if kind else names


def _spec(change: Callable[[Obj], Obj]) -> Callable[[Obj], Obj]:
    return lambda obj: within(obj, "spec", change)


STORED_DEFAULTS: Final[Mapping[str, Callable[[Obj], Obj]]] = {
    **{kind: _plain(spec) for kind, spec in _OF_SPEC.items()},
    "Job": _spec(_job_spec),
    "CronJob": _spec(_cronjob_spec),
    "StatefulSet": _spec(_statefulset_spec),
    "Service": _spec(_service_spec),
    "Endpoints": _endpoints,
    "EndpointSlice": lambda obj: each(obj, "ports", _slice_port),
    "StorageClass": lambda obj: with_defaults(obj, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
    "CustomResourceDefinition": _spec(_definition_spec),
}
