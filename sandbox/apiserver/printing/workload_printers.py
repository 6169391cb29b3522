"""How the owners of pods, and what they keep beside them, look in `kubectl get`.

Upstream: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.printing.columns import NONE, Cell, Printer, columns, name_of
from oarlock.sandbox.apiserver.text.selectors import labels_text, selector_text
from oarlock.sandbox.apiserver.text.times import age, between

Obj = dict[str, Any]


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
        name_of(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now_s),
        names,
        images,
        selector or NONE,
    ]


def _daemonset(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    template = spec.get("template") or {}
    names, images = containers_and_images(template)
    return [
        name_of(obj),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        labels_text((template.get("spec") or {}).get("nodeSelector")) or NONE,
        age(obj, now_s),
        names,
        images,
        selector_text(spec.get("selector")) or NONE,
    ]


def _deployment(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    names, images = containers_and_images(spec.get("template"))
    return [
        name_of(obj),
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        age(obj, now_s),
        names,
        images,
        selector_text(spec.get("selector")) or NONE,
    ]


def _job(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    names, images = containers_and_images(spec.get("template"))
    done, wanted, at_once = status.get("succeeded") or 0, spec.get("completions"), spec.get("parallelism") or 0
    completions = f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {at_once}" if at_once > 1 else f"{done}/1"
    held = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"}
    shown = next((state for state in ("Complete", "Failed", "Suspended") if state in held), "Running")
    started, ended = status.get("startTime"), status.get("completionTime")
    duration = between(started, ended, now_s) if started else ""
    return [
        name_of(obj),
        shown,
        completions,
        duration,
        age(obj, now_s),
        names,
        images,
        selector_text(spec.get("selector")) or NONE,
    ]


def _controllerrevision(obj: Obj, now_s: float) -> list[Cell]:
    owners = obj["metadata"].get("ownerReferences") or ()
    controller = next((owner for owner in owners if owner.get("controller")), None)
    told = NONE
    if controller is not None:
        group = controller["apiVersion"].rpartition("/")[0]
        told = f"{controller['kind']}{'.' if group else ''}{group}".lower() + f"/{controller['name']}"
    return [name_of(obj), told, obj.get("revision", 0), age(obj, now_s)]


_REPLICAS: Final = columns("Name|Desired|Current|Ready|Age", "Containers|Images|Selector", "Desired|Current|Ready")

WORKLOAD_PRINTERS: Final[Mapping[str, Printer]] = {
    "ReplicaSet": Printer(_REPLICAS, _replicaset),
    "ReplicationController": Printer(_REPLICAS, _replicationcontroller),
    "DaemonSet": Printer(
        columns(
            "Name|Desired|Current|Ready|Up-to-date|Available|Node Selector|Age",
            "Containers|Images|Selector",
            "Desired|Current|Ready|Up-to-date|Available",
        ),
        _daemonset,
    ),
    "Deployment": Printer(
        columns("Name|Ready|Up-to-date|Available|Age", "Containers|Images|Selector", "Up-to-date|Available"),
        _deployment,
    ),
    "Job": Printer(columns("Name|Status|Completions|Duration|Age", "Containers|Images|Selector"), _job),
    "ControllerRevision": Printer(columns("Name|Controller|Revision|Age"), _controllerrevision),
}
