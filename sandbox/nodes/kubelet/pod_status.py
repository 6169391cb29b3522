"""The status a kubelet reports for a simulated pod. Pure; `at` is the time of day as RFC 3339.

Upstream: pkg/kubelet/kubelet_pods.go and pkg/kubelet/status/generate.go (conditions and their reasons).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

Obj = dict[str, Any]

_NOT_READY: Final = "ContainersNotReady"
_HOST_IP_UNKNOWN: Final = "127.0.0.1"


def running(pod: Obj, pod_ip: str, host_ip: str, at: str, *, ready: bool) -> Obj:
    """A pod whose containers were started at `at`; ready or not yet."""
    spec, uid = pod["spec"], pod["metadata"]["uid"]
    names = [container["name"] for container in spec.get("containers") or ()]
    status: Obj = {
        "phase": "Running",
        "conditions": [_condition("Initialized", at), *readiness(names, at, ready=ready)],
        **_addresses(spec, pod_ip, host_ip),
        "startTime": at,
        "containerStatuses": [_running(c, uid, at, ready=ready) for c in spec.get("containers") or ()],
    }
    if init_containers := spec.get("initContainers"):
        status["initContainerStatuses"] = [_initialized(c, uid, at) for c in init_containers]
    return status


def pending(pod: Obj, waiting: Mapping[str, Obj], pod_ip: str, host_ip: str, at: str) -> Obj:
    """A pod of which some containers wait: name of each -> reason and message. All wait for an init container."""
    spec, uid = pod["spec"], pod["metadata"]["uid"]
    containers, inits = spec.get("containers") or (), spec.get("initContainers") or ()
    incomplete = [container["name"] for container in inits if container["name"] in waiting]
    if incomplete:
        waiting = {**{container["name"]: {"reason": "PodInitializing"} for container in containers}, **waiting}
        message = f"containers with incomplete status: [{' '.join(incomplete)}]"
        initialized = _condition("Initialized", at, "ContainersNotInitialized", message)
    else:
        initialized = _condition("Initialized", at)
    unready = [container["name"] for container in containers if container["name"] in waiting]
    status: Obj = {
        "phase": "Pending",
        "conditions": [initialized, *readiness(unready, at, ready=False)],
        **_addresses(spec, pod_ip, host_ip),
        "startTime": (pod.get("status") or {}).get("startTime", at),
        "containerStatuses": [
            _waiting(c, waiting[c["name"]]) if c["name"] in waiting else _running(c, uid, at, ready=True)
            for c in containers
        ],
    }
    if inits:
        status["initContainerStatuses"] = [
            _waiting(c, waiting[c["name"]]) if c["name"] in waiting else _initialized(c, uid, at) for c in inits
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


def given_up(pod: Obj, at: str) -> Obj:
    """A pod whose node is gone (upstream: pkg/controller/podgc, gcOrphaned)."""
    status = ended(pod, "Failed", "", "", at)
    status["conditions"].append(
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": at,
        }
    )
    return status


def host_ip(node: Obj) -> str:
    """The address that a node reports."""
    for address in (node.get("status") or {}).get("addresses") or ():
        if address.get("type") == "InternalIP":
            return str(address["address"])
    return _HOST_IP_UNKNOWN


def pod_ips() -> Iterator[str]:
    """Addresses of 10.0.0.0/8, in order and for ever."""
    while True:
        for number in range(1, 2**24 - 1):
            if number % 256 not in (0, 255):
                yield f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def _addresses(spec: Obj, pod_ip: str, host_ip: str) -> Obj:
    ip = host_ip if spec.get("hostNetwork") else pod_ip
    return {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}], "podIP": ip, "podIPs": [{"ip": ip}]}


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


def _waiting(container: Obj, why: Obj) -> Obj:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "restartCount": 0,
        "lastState": {},
        "ready": False,
        "started": False,
        "state": {"waiting": why},
    }


def _initialized(container: Obj, uid: str, at: str) -> Obj:
    """An init container that the others need not wait for: a sidecar runs, any other has ended."""
    if container.get("restartPolicy") == "Always":
        return _running(container, uid, at, ready=True)
    return _completed(container, uid, at)


def _completed(container: Obj, uid: str, at: str) -> Obj:
    terminated = {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}
    return {
        **_container(container, uid),
        "ready": True,
        "started": False,
        "state": {"terminated": {**terminated, "containerID": f"sim://{uid}/{container['name']}"}},
    }
