"""How each kind looks in `kubectl get`: columns and one row of cells per object.

Columns of priority 1 appear only with `-o wide`. What is shown, and the order of the rules, follow
upstream's pkg/printers/internalversion/printers.go. Pure: the moment is an argument (unix seconds).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.printing.columns import NONE, UNKNOWN, Cell, Printer, columns
from oarlock.sandbox.apiserver.printing.pod_row import pod_row
from oarlock.sandbox.apiserver.printing.stored_printers import STORED_PRINTERS
from oarlock.sandbox.apiserver.printing.workload_printers import WORKLOAD_PRINTERS
from oarlock.sandbox.apiserver.text.selectors import labels_text
from oarlock.sandbox.apiserver.text.times import since

Obj = dict[str, Any]


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
        _node_status(obj),
        _node_roles(obj),
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
    ]


def _resourcequota(obj: Obj, now_s: float) -> list[Cell]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    told: dict[bool, list[str]] = {False: [], True: []}
    for resource in sorted(hard):
        told[resource.startswith("limits.")].append(f"{resource}: {used.get(resource, '0')}/{hard[resource]}")
    return [", ".join(told[False]), ", ".join(told[True])]


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
        spec.get("type", ""),
        spec.get("clusterIP") or NONE,
        ",".join(external) or pending,
        ",".join(map(_port, spec.get("ports") or ())) or NONE,
        labels_text(spec.get("selector")) or NONE,
    ]


NAME_AND_AGE: Final = Printer(columns("Name|Age"), lambda obj, _: [])

PRINTERS: Final[Mapping[str, Printer]] = {
    "Namespace": Printer(columns("Name|Status|Age"), lambda obj, _: [(obj.get("status") or {}).get("phase", "")]),
    "Node": Printer(
        columns(
            "Name|Status|Roles|Age|Version",
            "Internal-IP|External-IP|OS-Image|Kernel-Version|Container-Runtime",
        ),
        _node,
    ),
    "Pod": Printer(columns("Name|Ready|Status|Restarts|Age", "IP|Node|Nominated Node|Readiness Gates"), pod_row),
    **WORKLOAD_PRINTERS,
    **STORED_PRINTERS,
    "Event": Printer(
        columns("Last Seen|Type|Reason|Object|Message", "Subobject|Source|First Seen|Count|Name", "Count"),
        _event,
    ),
    "Lease": Printer(columns("Name|Holder|Age"), lambda obj, _: [(obj.get("spec") or {}).get("holderIdentity") or ""]),
    "ResourceQuota": Printer(columns("Name|Request|Limit|Age"), _resourcequota),
    "ServiceAccount": Printer(
        columns("Name|Secrets|Age", integers="Secrets"), lambda obj, _: [len(obj.get("secrets") or ())]
    ),
    "ConfigMap": Printer(
        columns("Name|Data|Age", integers="Data"),
        lambda obj, _: [len(obj.get("data") or ()) + len(obj.get("binaryData") or ())],
    ),
    "Secret": Printer(
        columns("Name|Type|Data|Age", integers="Data"), lambda obj, _: [obj.get("type", ""), len(obj.get("data") or ())]
    ),
    "Service": Printer(columns("Name|Type|Cluster-IP|External-IP|Port(s)|Age", "Selector"), _service),
}
