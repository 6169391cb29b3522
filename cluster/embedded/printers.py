"""How each kind looks in `kubectl get`: columns and one row of cells per object.

Columns of priority 1 appear only with `-o wide`. What is shown, and the order of the rules, follow
upstream's pkg/printers/internalversion/printers.go. Pure: the moment is an argument (unix seconds).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cluster.embedded.durations import age, since
from cluster.embedded.labeltext import labels_text, selector_text
from cluster.embedded.podsummary import pod_row

Obj = dict[str, Any]
Cell = str | int
NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Printer:
    """`row(object, now_s)` gives one cell for each of `columns`."""

    columns: tuple[Column, ...]
    row: Callable[[Obj, float], list[Cell]]


def _columns(shown: str, wide: str = "", integers: str = "") -> tuple[Column, ...]:
    """Columns from two lists of names separated by `|`; `Name` is marked as such, `integers` as numbers."""
    numbers = integers.split("|")
    return tuple(
        Column(
            name,
            type="integer" if name in numbers else "string",
            format="name" if name == "Name" else "",
            priority=priority,
        )
        for priority, names in ((0, shown), (1, wide))
        for name in names.split("|")
        if name
    )


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def _name_and_age(obj: Obj, now_s: float) -> list[Cell]:
    return [_name(obj), age(obj, now_s)]


def _namespace(obj: Obj, now_s: float) -> list[Cell]:
    return [_name(obj), (obj.get("status") or {}).get("phase", ""), age(obj, now_s)]


def containers_and_images(template: Obj | None) -> tuple[str, str]:
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    return ",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)


def _replicaset(obj: Obj, now_s: float) -> list[Cell]:
    return _replicas(obj, now_s, selector_text((obj.get("spec") or {}).get("selector")))


def _replicationcontroller(obj: Obj, now_s: float) -> list[Cell]:
    return _replicas(obj, now_s, labels_text((obj.get("spec") or {}).get("selector")))


def _replicas(obj: Obj, now_s: float, selector: str) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    names, images = containers_and_images(spec.get("template"))
    return [
        _name(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now_s),
        names,
        images,
        selector or NONE,
    ]


def _node_status(obj: Obj) -> str:
    conditions = {c.get("type"): c.get("status") for c in (obj.get("status") or {}).get("conditions") or ()}
    ready = conditions.get("Ready")
    shown = ["Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"]
    if (obj.get("spec") or {}).get("unschedulable"):
        shown.append("SchedulingDisabled")
    return ",".join(shown)


def _node_roles(obj: Obj) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} - {""}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def _node(obj: Obj, now_s: float) -> list[Cell]:
    status = obj.get("status") or {}
    info = status.get("nodeInfo") or {}
    addresses = {a.get("type"): a.get("address") for a in status.get("addresses") or ()}
    return [
        _name(obj),
        _node_status(obj),
        _node_roles(obj),
        age(obj, now_s),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _event(obj: Obj, now_s: float) -> list[Cell]:
    about, source, series = obj.get("involvedObject") or {}, obj.get("source") or {}, obj.get("series") or {}
    first, last = obj.get("firstTimestamp") or obj.get("eventTime"), obj.get("lastTimestamp")
    count = obj.get("count") or 1
    if series:
        last, count = series.get("lastObservedTime"), series.get("count") or count
    seen = since(last or first, now_s)
    component = source.get("component") or obj.get("reportingComponent") or ""
    host = source.get("host") or obj.get("reportingInstance") or ""
    return [
        seen,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        (obj.get("message") or "").strip(),
        about.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        since(first, now_s),
        count,
        _name(obj),
    ]


def _lease(obj: Obj, now_s: float) -> list[Cell]:
    return [_name(obj), (obj.get("spec") or {}).get("holderIdentity") or "", age(obj, now_s)]


def _resourcequota(obj: Obj, now_s: float) -> list[Cell]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    told: dict[bool, list[str]] = {False: [], True: []}
    for resource in sorted(hard):
        told[resource.startswith("limits.")].append(f"{resource}: {used.get(resource, '0')}/{hard[resource]}")
    return [_name(obj), ", ".join(told[False]), ", ".join(told[True]), age(obj, now_s)]


def _serviceaccount(obj: Obj, now_s: float) -> list[Cell]:
    return [_name(obj), len(obj.get("secrets") or ()), age(obj, now_s)]


def _configmap(obj: Obj, now_s: float) -> list[Cell]:
    return [_name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now_s)]


def _secret(obj: Obj, now_s: float) -> list[Cell]:
    return [_name(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now_s)]


def _port(port: Obj) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}"


def _service(obj: Obj, now_s: float) -> list[Cell]:
    spec = obj.get("spec") or {}
    balancer = (obj.get("status") or {}).get("loadBalancer") or {}
    external = [i.get("ip") or i.get("hostname") or "" for i in balancer.get("ingress") or ()]
    external += spec.get("externalIPs") or []
    if spec.get("type") == "ExternalName":
        external = [spec.get("externalName", "")]
    pending = "<pending>" if spec.get("type") == "LoadBalancer" else NONE
    return [
        _name(obj),
        spec.get("type", ""),
        spec.get("clusterIP") or NONE,
        ",".join(external) or pending,
        ",".join(map(_port, spec.get("ports") or ())) or NONE,
        age(obj, now_s),
        labels_text(spec.get("selector")) or NONE,
    ]


NAME_AND_AGE: Final = Printer(_columns("Name|Age"), _name_and_age)

_REPLICAS: Final = _columns("Name|Desired|Current|Ready|Age", "Containers|Images|Selector", "Desired|Current|Ready")

PRINTERS: Final[Mapping[str, Printer]] = {
    "Namespace": Printer(_columns("Name|Status|Age"), _namespace),
    "Node": Printer(
        _columns(
            "Name|Status|Roles|Age|Version",
            "Internal-IP|External-IP|OS-Image|Kernel-Version|Container-Runtime",
        ),
        _node,
    ),
    "Pod": Printer(_columns("Name|Ready|Status|Restarts|Age", "IP|Node|Nominated Node|Readiness Gates"), pod_row),
    "ReplicaSet": Printer(_REPLICAS, _replicaset),
    "ReplicationController": Printer(_REPLICAS, _replicationcontroller),
    "Event": Printer(
        _columns("Last Seen|Type|Reason|Object|Message", "Subobject|Source|First Seen|Count|Name", "Count"),
        _event,
    ),
    "Lease": Printer(_columns("Name|Holder|Age"), _lease),
    "ResourceQuota": Printer(_columns("Name|Request|Limit|Age"), _resourcequota),
    "ServiceAccount": Printer(_columns("Name|Secrets|Age", integers="Secrets"), _serviceaccount),
    "ConfigMap": Printer(_columns("Name|Data|Age", integers="Data"), _configmap),
    "Secret": Printer(_columns("Name|Type|Data|Age", integers="Data"), _secret),
    "Service": Printer(_columns("Name|Type|Cluster-IP|External-IP|Port(s)|Age", "Selector"), _service),
}
