"""The status a kubelet reports for a simulated pod. Pure.

Upstream: pkg/kubelet/kubelet_pods.go and pkg/kubelet/status/generate.go (conditions and their reasons).
"""

from __future__ import annotations

from typing import Any, Final

Obj = dict[str, Any]

_NOT_READY: Final = "ContainersNotReady"


def running(pod: Obj, pod_ip: str, host_ip: str, at: str, *, ready: bool) -> Obj:
    """A pod whose containers were started at `at` (RFC 3339); ready or not yet."""
    spec, uid = pod["spec"], pod["metadata"]["uid"]
    names = [container["name"] for container in spec.get("containers") or ()]
    status: Obj = {
        "phase": "Running",
        "conditions": [_condition("Initialized", at), *readiness(names, at, ready=ready)],
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": host_ip if spec.get("hostNetwork") else pod_ip,
        "podIPs": [{"ip": host_ip if spec.get("hostNetwork") else pod_ip}],
        "startTime": at,
        "containerStatuses": [_running(c, uid, at, ready=ready) for c in spec.get("containers") or ()],
    }
    if init_containers := spec.get("initContainers"):
        status["initContainerStatuses"] = [
            _running(c, uid, at, ready=True) if c.get("restartPolicy") == "Always" else _completed(c, uid, at)
            for c in init_containers
        ]
    return status


def readiness(names: list[str], at: str, *, ready: bool) -> list[Obj]:
    """The two conditions that say whether the containers called `names` serve."""
    if ready:
        return [_condition("Ready", at), _condition("ContainersReady", at)]
    message = f"containers with unready status: [{' '.join(names)}]"
    return [_condition(type_, at, _NOT_READY, message) for type_ in ("Ready", "ContainersReady")]


def changed_readiness(pod: Obj, at: str, *, ready: bool) -> Obj:
    """What to write when a running pod becomes ready, or stops being so."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return {
        "conditions": readiness([status["name"] for status in statuses], at, ready=ready),
        "containerStatuses": [{**status, "ready": ready} for status in statuses],
    }


def ended(pod: Obj, phase: str, reason: str, message: str, at: str) -> Obj:
    """A pod that is over: `phase` Succeeded or Failed. A telling `reason` is also that of its containers, which is
    what `kubectl get` shows."""
    exit_code = 0 if phase == "Succeeded" else 1
    why = "Completed" if phase == "Succeeded" else reason if reason not in ("", phase) else "Error"
    condition_reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    status: Obj = {
        "phase": phase,
        "conditions": [_condition(type_, at, condition_reason) for type_ in ("Ready", "ContainersReady")],
        "containerStatuses": [
            {
                **container,
                "ready": False,
                "started": False,
                "state": {
                    "terminated": {
                        "exitCode": exit_code,
                        "reason": why,
                        "startedAt": container.get("state", {}).get("running", {}).get("startedAt", at),
                        "finishedAt": at,
                        "containerID": container.get("containerID", ""),
                    }
                },
            }
            for container in statuses
        ],
    }
    if reason:
        status["reason"] = reason
    if message:
        status["message"] = message
    return status


def _condition(type_: str, at: str, reason: str = "", message: str = "") -> Obj:
    condition: Obj = {"type": type_, "status": "False" if reason else "True", "lastTransitionTime": at}
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def _container(container: Obj, uid: str) -> Obj:
    name, image = container["name"], container.get("image", "")
    return {
        "name": name,
        "image": image,
        "imageID": f"sim://{image}",
        "containerID": f"sim://{uid}/{name}",
        "restartCount": 0,
        "lastState": {},
    }


def _running(container: Obj, uid: str, at: str, *, ready: bool) -> Obj:
    return {
        **_container(container, uid),
        "ready": ready,
        "started": True,
        "state": {"running": {"startedAt": at}},
    }


def _completed(container: Obj, uid: str, at: str) -> Obj:
    terminated = {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}
    return {
        **_container(container, uid),
        "ready": True,
        "started": False,
        "state": {"terminated": {**terminated, "containerID": f"sim://{uid}/{container['name']}"}},
    }
