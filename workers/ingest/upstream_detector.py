"""Detects upstream's controllers at work on our kinds, by the one trace that proves it: the pods they create.

A pod is theirs if an owner of our kinds controls it, its name was generated (our pods have slot names), and its
managedFields name upstream's manager. Such a pod is evidence only if it is new: created since the epoch was listed, or
shortly before. An older one may be from before the take-over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import msgspec

from oarlock.controllers.objects.model import Pod, controller_of
from oarlock.controllers.registry import CONTROLLERS, QUEUE_OF_KIND

RECENT_MS = 10_000
"""A listed pod of this age or less counts as new. A person who takes over waits longer between the two managers."""
MANAGERS = ("kube-controller-manager", "hyperkube", "k3s")
"""The managers that upstream's controllers write: the name of their program, cut at the first slash."""

_SIGNS = tuple(f'"manager":"{name}"'.encode() for name in MANAGERS)  # as API servers write it: compact


@dataclass(frozen=True, slots=True)
class Evidence:
    """A pod that a manager of upstream's created for an owner of ours; ``at`` is the API server's time."""

    pod: str
    owner: str
    manager: str
    at: str

    def __str__(self) -> str:
        return f"{self.manager} created pod {self.pod} of {self.owner} at {self.at}"


def mend() -> str:
    """How upstream's manager is to be started beside us.

    Upstream: cmd/kube-controller-manager/app/controllermanager.go; the names until 1.27, which are still taken.
    """
    return "start it with --controllers=*," + ",".join(
        f"-{each.name.removesuffix('-controller')}" for each in CONTROLLERS.values()
    )


class _Entry(msgspec.Struct):
    manager: str = ""
    operation: str = ""
    time: str = ""


class _Meta(msgspec.Struct, rename="camel"):
    generate_name: str | None = None
    creation_timestamp: str | None = None
    managed_fields: tuple[_Entry, ...] | None = None


class _Object(msgspec.Struct):
    metadata: _Meta


_OBJECT = msgspec.json.Decoder(_Object)


class UpstreamDetector:
    """Looks at pods as they are read; for a new pod that costs a search in its bytes. ``wall_ms``: the wall clock.

    ``kinds``: of the owners that this fleet manages; upstream may well manage others. ``latest``: the newest evidence.
    """

    def __init__(self, wall_ms: Callable[[], int], kinds: Collection[str] = QUEUE_OF_KIND) -> None:
        self._wall_ms, self._kinds = wall_ms, kinds
        self.latest: Evidence | None = None

    def added(self, raw: bytes, pod: Pod) -> None:
        """Look at a pod that a watch reports as new."""
        if found := evidence(raw, pod, self._kinds):
            self.latest = found

    def listed(self, raw: bytes, pod: Pod) -> None:
        """Look at a pod of a list."""
        if pod.created_ms and self._wall_ms() - pod.created_ms <= RECENT_MS:
            self.added(raw, pod)


def evidence(raw: bytes, pod: Pod, kinds: Collection[str] = QUEUE_OF_KIND) -> Evidence | None:
    """What the JSON of a pod proves; None if nothing."""
    if not any(sign in raw for sign in _SIGNS):
        return None
    ref = controller_of(pod)
    if ref is None or ref.kind not in kinds:
        return None
    try:
        meta = _OBJECT.decode(raw).metadata
    except msgspec.MsgspecError:
        return None  # nothing else reads these fields, so they must not stop the reading of pods
    if not meta.generate_name:
        return None
    manager = next((each.manager for each in meta.managed_fields or () if each.manager in MANAGERS), "")
    if not manager:
        return None  # the name stood elsewhere in the pod
    return Evidence(pod.key, f"{ref.kind} {ref.name}", manager, meta.creation_timestamp or "")
