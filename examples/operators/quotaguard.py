"""A guard over namespaces: counts the pods of each and reports in a ConfigMap there. It owns none of the pods.

    kubectl annotate namespace shop quota.example.com/max-pods=20
    kubectl get configmap pod-count -n shop -o yaml

`wakes=` is the index: from a pod to the namespace that it concerns. The function gets exactly the pods of its
namespace. Of a pod only the phase is cached, so a heartbeat of its status wakes nobody.
"""

from typing import Any

import oarlock

MAX = "quota.example.com/max-pods"
REPORT = "pod-count"
ENDED = ("Succeeded", "Failed")


def namespace_of(pod: dict[str, Any]) -> list[str]:
    return [pod["metadata"]["namespace"]]


@oarlock.desired(
    "v1 Namespace",
    children=["v1 ConfigMap"],
    watches=[oarlock.watch("v1 Pod", wakes=namespace_of, fields=["status.phase"])],
    fields=["metadata.annotations"],
)
def quotaguard(namespace: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    name = namespace["metadata"]["name"]
    text = namespace["metadata"].get("annotations", {}).get(MAX)
    if text is None:
        return oarlock.Result()  # not guarded: a report of earlier is deleted
    if not text.isdigit():
        raise oarlock.Never(f"{MAX} is {text!r}, not a number")
    pods = sum(pod.get("status", {}).get("phase") not in ENDED for pod in children.all_watched("Pod"))
    over = max(0, pods - int(text))
    report = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": REPORT, "namespace": name},
        "data": {"pods": str(pods), "max": text, "over": str(over)},
    }
    return oarlock.Result([report], events=[("TooManyPods", f"{pods} pods, {over} more than {text}")] if over else [])
