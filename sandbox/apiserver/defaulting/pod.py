"""Defaults of a pod, with what upstream's admission adds: service account, priority, default tolerations.

Upstream: pkg/apis/core/v1/defaults.go (SetDefaults_Pod) and
plugin/pkg/admission/{serviceaccount,priority,defaulttolerationseconds}. The token volume of a service account
is left out: nothing here would read it.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.defaulting.pod_spec import each, with_defaults
from oarlock.sandbox.apiserver.defaulting.spec_memo import SpecMemo

Obj = dict[str, Any]

_EVICTION_DELAY_S: Final = 300
_DELAYED_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PRIORITIES: Final = {
    "": 0,
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def default_pod(pod: Obj) -> Obj:
    """A new or changed pod with everything filled in that its spec lacks."""
    spec = pod.get("spec") or {}
    filled = _SPECS.defaulted(spec)
    return pod if filled is spec else {**pod, "spec": filled}


def _pod_spec(spec: Obj) -> Obj:
    spec = with_defaults(spec, {"enableServiceLinks": True})
    for field in ("initContainers", "containers"):
        spec = each(spec, field, _requests_from_limits)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec = with_defaults(spec, {"serviceAccountName": account, "serviceAccount": account})
    priority = _PRIORITIES.get(spec.get("priorityClassName") or "")
    if priority is not None:
        spec = with_defaults(spec, {"priority": priority, "preemptionPolicy": "PreemptLowerPriority"})
    return _default_tolerations(spec)


def _requests_from_limits(container: Obj) -> Obj:
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return container
    requests = resources.get("requests") or {}
    if limits.keys() <= requests.keys():
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def _default_tolerations(spec: Obj) -> Obj:
    tolerations: list[Obj] = spec.get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTION_DELAY_S}
        for key in _DELAYED_TAINTS
        if not any(
            toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")
            for toleration in tolerations
        )
    ]
    return {**spec, "tolerations": [*tolerations, *added]} if added else spec


_SPECS: Final = SpecMemo(_pod_spec)
