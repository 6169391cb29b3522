"""A pod on one line: ready containers, the one word that says best how it is, restarts.

The word is found as in upstream's printPod (pkg/printers/internalversion/printers.go): the pod's own reason
or phase, overruled by init containers that are not done, else by containers that wait or have ended, and at
last by deletion.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.printing.columns import Cell
from oarlock.sandbox.apiserver.text.times import since

Obj = dict[str, Any]
_NONE: Final = "<none>"


def _is_sidecar(spec: Obj) -> bool:
    return spec.get("restartPolicy") == "Always"


def _ended(terminated: Obj) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _init_word(specs: list[Obj], statuses: list[Obj]) -> str | None:
    """How far initialisation is, or None when it is over."""
    by_name = {c.get("name"): c for c in specs}
    for index, container in enumerate(statuses):
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if _is_sidecar(by_name.get(container.get("name"), {})) and container.get("started"):
            continue
        if terminated is not None:
            return "Init:" + _ended(terminated)
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(specs)}"
    return None


def _condition(status: Obj, type_: str) -> str | None:
    return next((c.get("status") for c in status.get("conditions") or () if c.get("type") == type_), None)


def _status_word(spec: Obj, status: Obj) -> str:
    word = str(status.get("reason") or status.get("phase") or "Pending")
    if any(
        c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in status.get("conditions") or ()
    ):
        word = "SchedulingGated"
    initialising = _init_word(spec.get("initContainers") or [], status.get("initContainerStatuses") or [])
    if initialising is not None and _condition(status, "Initialized") != "True":
        return initialising
    has_running = False
    for container in reversed(status.get("containerStatuses") or []):
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            word = waiting["reason"]
        elif terminated is not None:
            word = _ended(terminated)
        elif container.get("ready") and state.get("running") is not None:
            has_running = True
    if word == "Completed" and has_running:
        word = "Running" if _condition(status, "Ready") == "True" else "NotReady"
    return word


def _restarts(status: Obj, sidecars: set[str], now_s: float) -> str:
    count, last = 0, ""
    counted = [
        *(c for c in status.get("initContainerStatuses") or () if c.get("name") in sidecars),
        *(status.get("containerStatuses") or ()),
    ]
    for container in counted:
        count += container.get("restartCount") or 0
        ended = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        last = max(last, ended or "")  # timestamps of one form sort as text
    return f"{count} ({since(last, now_s)} ago)" if count and last else str(count)


def _gates(spec: Obj, status: Obj) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return _NONE
    met = sum(_condition(status, gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"


def pod_row(obj: Obj, now_s: float) -> list[Cell]:
    """Cells for Ready, Status, Restarts, IP, Node, Nominated Node, Readiness Gates."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    sidecars = {c.get("name", "") for c in spec.get("initContainers") or () if _is_sidecar(c)}
    ready = sum(
        bool(c.get("ready") and (c.get("state") or {}).get("running") is not None)
        for c in status.get("containerStatuses") or ()
    ) + sum(
        bool(c.get("ready") and c.get("started"))
        for c in status.get("initContainerStatuses") or ()
        if c.get("name") in sidecars
    )
    word = _status_word(spec, status)
    if meta.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            word = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            word = "Terminating"
    return [
        f"{ready}/{len(spec.get('containers') or ()) + len(sidecars)}",
        word,
        _restarts(status, sidecars, now_s),
        status.get("podIP") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        _gates(spec, status),
    ]
