"""How the owners of pods, and what they keep beside them, look in `kubectl get`.

Upstream: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.printing.columns import NONE, Cell, Printer, columns
from oarlock.sandbox.apiserver.text.selectors import labels_text, selector_text
from oarlock.sandbox.apiserver.text.times import between

Obj = dict[str, Any]


def _pods(spec: Obj, as_text: Callable[[Obj | None], str] = selector_text) -> tuple[str, str, str]:
    """The cells for Containers, Images, Selector. ``as_text``: how the kind's selector is written."""
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    names, images = (",".join(c.get(field, "") for c in containers) for field in ("name", "image"))
    return names, images, as_text(spec.get("selector")) or NONE


def _replicaset(obj: Obj, now_s: float) -> list[Cell]:
    return [*_replicas(obj), *_pods(obj.get("spec") or {})]


def _replicationcontroller(obj: Obj, now_s: float) -> list[Cell]:
    return [*_replicas(obj), *_pods(obj.get("spec") or {}, labels_text)]


def _replicas(obj: Obj) -> tuple[Cell, ...]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)


def _daemonset(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        labels_text(((spec.get("template") or {}).get("spec") or {}).get("nodeSelector")) or NONE,
        *_pods(spec),
    ]


def _deployment(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        *_pods(spec),
    ]


def _job(obj: Obj, now_s: float) -> list[Cell]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    done, wanted, at_once = status.get("succeeded") or 0, spec.get("completions"), spec.get("parallelism") or 0
    completions = f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {at_once}" if at_once > 1 else f"{done}/1"
    held = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"}
    shown = next((state for state in ("Complete", "Failed", "Suspended") if state in held), "Running")
    started, ended = status.get("startTime"), status.get("completionTime")
    duration = between(started, ended, now_s) if started else ""
    return [shown, completions, duration, *_pods(spec)]


def _controllerrevision(obj: Obj, now_s: float) -> list[Cell]:
    owners = obj["metadata"].get("ownerReferences") or ()
    controller = next((owner for owner in owners if owner.get("controller")), None)
    told = NONE
    if controller is not None:
        group = controller["apiVersion"].rpartition("/")[0]
        told = f"{controller['kind']}{'.' if group else ''}{group}".lower() + f"/{controller['name']}"
    return [told, obj.get("revision", 0)]


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
        columns("Name|Ready|Up-to-date|Available|Age", "Containers|Images|Selector"),
        _deployment,
    ),
    "Job": Printer(columns("Name|Status|Completions|Duration|Age", "Containers|Images|Selector"), _job),
    "ControllerRevision": Printer(columns("Name|Controller|Revision|Age"), _controllerrevision),
}
