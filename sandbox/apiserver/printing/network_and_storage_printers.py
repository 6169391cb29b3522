"""How endpoints, ingresses, volumes, autoscalers and their like look in `kubectl get`.

Upstream: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.printing.columns import NONE, UNKNOWN, Cell, Printer, columns
from oarlock.sandbox.apiserver.text.times import since

Obj = dict[str, Any]

_SHOWN_MAX: Final = 3
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_UNSET: Final = "<unset>"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


def _some(items: list[str]) -> str:
    """The first few, and how many more there are."""
    more = len(items) - _SHOWN_MAX
    return ",".join(items[:_SHOWN_MAX]) + (f" + {more} more..." if more > 0 else "") if items else NONE


def _endpoints(obj: Obj, now_s: float) -> list[Cell]:
    told: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [each.get("ip") or "" for each in subset.get("addresses") or ()]
        ports = [each.get("port") for each in subset.get("ports") or ()]
        told += [f"{address}:{port}" for port in ports for address in addresses] if ports else addresses
    return [_some(told)]


def _endpointslice(obj: Obj, now_s: float) -> list[Cell]:
    ports = [str(each["port"]) if each.get("port") else "*" for each in obj.get("ports") or ()]
    addresses = [address for each in obj.get("endpoints") or () for address in each.get("addresses") or ()]
    return [
        obj.get("addressType") or "",
        _some(ports) if ports else _UNSET,
        _some(addresses) if addresses else _UNSET,
    ]


def _ingress(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    addresses = (status.get("loadBalancer") or {}).get("ingress") or ()
    return [
        spec.get("ingressClassName") or NONE,
        _some(hosts) if hosts else "*",
        ",".join(each.get("ip") or each.get("hostname") or "" for each in addresses),
        "80, 443" if spec.get("tls") else "80",
    ]


def _modes(modes: list[str] | None) -> str:
    return ",".join(_MODES.get(mode, "") for mode in dict.fromkeys(modes or ()))


def _class(obj: Obj, spec: Obj) -> str:
    return (obj["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION) or spec.get("storageClassName") or ""


def _claim(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    leaves, volume = "deletionTimestamp" in obj["metadata"], spec.get("volumeName") or ""
    return [
        "Terminating" if leaves else status.get("phase") or "",
        volume,
        str((status.get("capacity") or {}).get("storage") or "") if volume else "",
        _modes(status.get("accessModes")) if volume else "",
        _class(obj, spec),
        spec.get("volumeAttributesClassName") or _UNSET,
        spec.get("volumeMode") or _UNSET,
    ]


def _volume(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    claim = spec.get("claimRef")
    return [
        str((spec.get("capacity") or {}).get("storage") or ""),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "",
        "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase") or "",
        f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else "",
        _class(obj, spec),
        spec.get("volumeAttributesClassName") or _UNSET,
        status.get("reason") or "",
        spec.get("volumeMode") or _UNSET,
    ]


def _storageclass(obj: Obj, now_s: float) -> list[Cell]:
    return [
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        "true" if obj.get("allowVolumeExpansion") else "false",
    ]


def _autoscaler(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    ref = spec.get("scaleTargetRef") or {}
    return [
        f"{ref.get('kind') or ''}/{ref.get('name') or ''}",
        _some([_target(metric) for metric in spec.get("metrics") or ()]),
        str(spec["minReplicas"]) if spec.get("minReplicas") is not None else _UNSET,
        spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0,
    ]


def _target(metric: Obj) -> str:
    """What a metric should be; what it is, nobody measures here."""
    resource = metric.get("resource") or {}
    target = resource.get("target") or {}
    share = target.get("averageUtilization")
    wanted = f"{share}%" if share is not None else str(target.get("averageValue") or "<auto>")
    return f"{resource.get('name')}: {UNKNOWN}/{wanted}" if resource else f"{UNKNOWN}/{wanted}"


def _cronjob(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    last = status.get("lastScheduleTime")
    template = ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or ()
    return [
        spec.get("schedule") or "",
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        since(last, now_s) if last else NONE,
        ",".join(each.get("name") or "" for each in containers),
        ",".join(each.get("image") or "" for each in containers),
        NONE,
    ]


def _statefulset(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    return [
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas') or 0}",
        ",".join(each.get("name") or "" for each in containers),
        ",".join(each.get("image") or "" for each in containers),
    ]


_VOLUME_COLUMNS: Final = "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass"

NETWORK_AND_STORAGE_PRINTERS: Final[Mapping[str, Printer]] = {
    "Endpoints": Printer(columns("Name|Endpoints|Age"), _endpoints),
    "EndpointSlice": Printer(columns("Name|AddressType|Ports|Endpoints|Age"), _endpointslice),
    "Ingress": Printer(columns("Name|Class|Hosts|Address|Ports|Age"), _ingress),
    "PersistentVolumeClaim": Printer(
        columns(
            "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age",
            "VolumeMode",
        ),
        _claim,
    ),
    "PersistentVolume": Printer(columns(f"{_VOLUME_COLUMNS}|Reason|Age", "VolumeMode"), _volume),
    "StorageClass": Printer(
        columns("Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age"), _storageclass
    ),
    "HorizontalPodAutoscaler": Printer(columns("Name|Reference|Targets|MinPods|MaxPods|Replicas|Age"), _autoscaler),
    "CronJob": Printer(
        columns("Name|Schedule|Timezone|Suspend|Active|Last Schedule|Age", "Containers|Images|Selector", "Active"),
        _cronjob,
    ),
    "StatefulSet": Printer(columns("Name|Ready|Age", "Containers|Images"), _statefulset),
}
